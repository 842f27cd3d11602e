// A map of thousands of tokens: tiles on canvas, fetched as they come into view, with an overview that is a maximum.
import { Signal, signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Failure, post, tab } from '../api';
import { escapeXml } from '../export';
import { fixed, full, num } from '../num';
import { isDark, ramp } from '../store';
import { t } from '../words';
import { Failed, Slider, useWidth } from '../ui';
import { bytesOf, level, Scale } from './colours';
import { Figure } from './figure';
import { Legend } from './heat';

const side = 256; // cells of a tile
interface Tile {
  values: Float32Array;
  rows: number;
  columns: number;
  image: HTMLCanvasElement | null;
  painted: string; // the colours that the image was painted with
}
interface MapAnswer {
  values: string | number[][];
  pooled: 'max' | 'none';
}

const floats = (values: string | number[][]): Float32Array => {
  if (typeof values !== 'string') return Float32Array.from(values.flat());
  const text = atob(values);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
};

/** The tiles of one head's map: level 0 is exact, every further level the maximum over twice as many rows and columns. */
class Tiles {
  readonly levels: number;
  readonly known = new Map<string, Tile>();
  readonly changed = signal(0);
  readonly failure = signal<Failure | null>(null);
  private wanted: string[] = [];
  private flying = 0;
  private used: string[] = [];

  constructor(readonly session: string, readonly name: string, readonly layer: number, readonly head: number, readonly rows: number, readonly columns: number) {
    this.levels = Math.max(0, Math.ceil(Math.log2(Math.max(rows, columns) / side)));
  }
  key = (level: number, row: number, column: number) => `${level},${row},${column}`;
  get(level: number, row: number, column: number): Tile | null {
    return this.known.get(this.key(level, row, column)) ?? null;
  }
  /** Asks for these tiles, the first ones first; what was asked for before and is no longer wanted is forgotten. */
  want(keys: string[]) {
    this.wanted = keys.filter((key) => !this.known.has(key));
    this.used = keys;
    this.fetch();
  }
  private fetch() {
    while (this.flying < 2 && this.wanted.length) void this.load(this.wanted.shift()!);
  }
  private async load(key: string) {
    const [level, row, column] = key.split(',').map(Number);
    const span = side * 2 ** level;
    const range = (at: number, most: number): [number, number] => [at * span, Math.min(most, (at + 1) * span)];
    const [r, c] = [range(row, this.rows), range(column, this.columns)];
    const cells = [Math.ceil((r[1] - r[0]) / 2 ** level), Math.ceil((c[1] - c[0]) / 2 ** level)];
    ++this.flying;
    const placeholder: Tile = { values: new Float32Array(0), rows: 0, columns: 0, image: null, painted: '' };
    this.known.set(key, placeholder);
    try {
      const answer = await post<MapAnswer>('/map', { session: this.session, name: this.name, layer: this.layer, head: this.head, row: r, column: c, cells, form: 'base64' }, `${tab}-tile-${key}`);
      this.known.set(key, { values: floats(answer.values), rows: cells[0], columns: cells[1], image: null, painted: '' });
      if (this.known.size > 160) for (const old of [...this.known.keys()].slice(0, 60)) if (!this.used.includes(old) && !old.startsWith(`${this.levels},`)) this.known.delete(old);
      this.failure.value = null;
    } catch (problem) {
      // A file has only some tiles, and says so below: the coarser ones stay.
      if ((problem as Failure).error === 'recorded') this.known.set(key, placeholder);
      else this.known.delete(key);
      if ((problem as Failure).status !== 409 && (problem as Failure).error !== 'recorded') this.failure.value = problem as Failure;
    }
    --this.flying;
    this.changed.value++;
    this.fetch();
  }
}

function image(tile: Tile, scale: Scale, colours: string): HTMLCanvasElement | null {
  if (!tile.rows) return null;
  if (tile.image && tile.painted === colours) return tile.image;
  const canvas = tile.image ?? document.createElement('canvas');
  canvas.width = tile.columns;
  canvas.height = tile.rows;
  const context = canvas.getContext('2d')!;
  const data = context.createImageData(tile.columns, tile.rows);
  const bytes = bytesOf(scale);
  for (let i = 0, at = 0; i < tile.values.length; ++i, at += 4) {
    const from = 3 * level(tile.values[i], scale);
    data.data[at] = bytes[from];
    data.data[at + 1] = bytes[from + 1];
    data.data[at + 2] = bytes[from + 2];
    data.data[at + 3] = 255;
  }
  context.putImageData(data, 0, 0);
  tile.image = canvas;
  tile.painted = colours;
  return canvas;
}

interface TileMapProps {
  session: string;
  name: string;
  layer: number;
  head: number;
  rows: string[];
  columns: string[];
  title: string;
  view: Signal<string>; // row, column and cell size, for the address: "row,column,size"
  command?: string;
}
const edge = { left: 84, bottom: 76 };
const font = '13px system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif';

export function TileMap(props: TileMapProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useRef<HTMLCanvasElement>(null);
  const tiles = useMemo(() => new Tiles(props.session, props.name, props.layer, props.head, props.rows.length, props.columns.length), [props.session, props.name, props.layer, props.head]);
  const [under, setUnder] = useState<[number, number] | null>(null);
  const [high, setHigh] = useState<number | null>(null); // where the colours end, if chosen by hand
  const [table, setTable] = useState(false);
  const [n, m] = [props.rows.length, props.columns.length];
  const wide = Math.max(80, width - edge.left);
  const tall = Math.min(560, wide);
  const least = Math.min(wide / m, tall / n);
  const clamp = (x: number, low: number, top: number) => Math.max(low, Math.min(Math.max(low, top), x));
  // What is in view: its first row and column, and the size of a cell in pixels.
  const parse = () => {
    const [row, column, size] = props.view.value.split(',').map(Number);
    return Number.isFinite(row) && size > 0 ? { row, column, size } : { row: 0, column: 0, size: least };
  };
  const at = useRef(parse());
  const written = useRef(props.view.value);
  if (props.view.value !== written.current) {
    at.current = parse(); // the address changed
    written.current = props.view.value;
  }
  const overview = tiles.get(tiles.levels, 0, 0);
  const usual = useMemo(() => {
    if (!overview?.rows) return 1;
    const sorted = Float32Array.from(overview.values).filter((x) => x > 0).sort();
    return sorted.length ? Math.max(1e-6, Number(sorted[Math.floor(0.97 * (sorted.length - 1))].toPrecision(2))) : 1;
  }, [overview?.values]);
  const scale: Scale = { low: 0, high: high ?? usual };
  const colours = `${ramp.value}${scale.high}`;

  const shown = () => Math.max(0, Math.min(tiles.levels, Math.floor(-Math.log2(at.current.size * (devicePixelRatio || 1)))));
  const bound = () => {
    const v = at.current;
    v.size = clamp(v.size, least, 40);
    v.row = clamp(v.row, 0, n - tall / v.size);
    v.column = clamp(v.column, 0, m - wide / v.size);
  };

  const draw = () => {
    const c = canvas.current;
    if (!c || !width) return;
    bound();
    const { row, column, size } = at.current;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [width, tall + edge.bottom];
    if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
      c.width = Math.round(w * ratio);
      c.height = Math.round(h * ratio);
      c.style.width = `${w}px`;
      c.style.height = `${h}px`;
    }
    const g = c.getContext('2d')!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line, ground] = ['--ink', '--soft', '--line', '--bg'].map((name) => style.getPropertyValue(name).trim());
    const [inWide, inTall] = [Math.min(wide, m * size), Math.min(tall, n * size)];
    g.fillStyle = ground;
    g.fillRect(edge.left, 0, inWide, inTall);
    g.save();
    g.beginPath();
    g.rect(edge.left, 0, inWide, inTall);
    g.clip();
    g.imageSmoothingEnabled = false;
    const now = shown();
    const wanted: string[] = [];
    // The overview first, then finer tiles over it: there is never a hole, only a coarser picture for a moment.
    for (const depth of [...new Set([tiles.levels, Math.min(tiles.levels, now + 1), now])]) {
      const span = side * 2 ** depth;
      for (let i = Math.floor(row / span); i * span < Math.min(n, row + tall / size); ++i) {
        for (let j = Math.floor(column / span); j * span < Math.min(m, column + wide / size); ++j) {
          if (depth === now || depth === tiles.levels) wanted.unshift(tiles.key(depth, i, j));
          const tile = tiles.get(depth, i, j);
          const picture = tile && image(tile, scale, colours);
          if (!picture) continue;
          const step = 2 ** depth * size;
          g.drawImage(picture, edge.left + (j * span - column) * size, (i * span - row) * size, tile.columns * step, tile.rows * step);
        }
      }
    }
    if (under) {
      g.strokeStyle = '#fff';
      g.lineWidth = 1.5;
      g.strokeRect(edge.left + (under[1] - column) * size - 1, (under[0] - row) * size - 1, Math.max(3, size) + 2, Math.max(3, size) + 2);
    }
    g.restore();
    g.strokeStyle = line;
    g.strokeRect(edge.left - 0.5, -0.5, inWide + 1, inTall + 1);
    // Tokens where there is room for them, else numbers of places.
    g.font = font;
    g.textBaseline = 'middle';
    const every = (room: number) => {
      const raw = room / size;
      if (raw <= 1) return 1;
      const ten = 10 ** Math.floor(Math.log10(raw));
      return [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= raw)!;
    };
    const rowStep = every(17);
    g.textAlign = 'right';
    for (let i = Math.ceil(row / rowStep) * rowStep; i < Math.min(n, row + inTall / size); i += rowStep) {
      g.fillStyle = under?.[0] === i ? ink : soft;
      const y = (i + 0.5 - row) * size;
      if (y > 5 && y < inTall - 3) g.fillText(rowStep === 1 ? `${props.rows[i]}  ${i}` : String(i), edge.left - 7, y);
    }
    const columnStep = every(rowStep === 1 ? 17 : 56);
    for (let j = Math.ceil(column / columnStep) * columnStep; j < Math.min(m, column + inWide / size); j += columnStep) {
      g.fillStyle = under?.[1] === j ? ink : soft;
      const x = edge.left + (j + 0.5 - column) * size;
      if (columnStep === 1) {
        g.save();
        g.translate(x, inTall + 8);
        g.rotate(Math.PI / 3);
        g.textAlign = 'left';
        g.fillText(props.columns[j], 0, 0);
        g.restore();
      } else if (x < width - 14) {
        g.textAlign = 'center';
        g.fillText(String(j), x, inTall + 12);
      }
    }
    tiles.want(wanted);
    overviewFrame();
  };

  const overviewFrame = () => {
    const c = small.current;
    const tile = tiles.get(tiles.levels, 0, 0);
    const picture = tile && image(tile, scale, colours);
    if (!c || !picture) return;
    const g = c.getContext('2d')!;
    g.imageSmoothingEnabled = false;
    g.clearRect(0, 0, c.width, c.height);
    g.drawImage(picture, 0, 0, c.width, c.height);
    const { row, column, size } = at.current;
    g.strokeStyle = '#fff';
    g.lineWidth = 2;
    g.strokeRect((column / m) * c.width, (row / n) * c.height, Math.max(3, Math.min(1, wide / size / m) * c.width), Math.max(3, Math.min(1, tall / size / n) * c.height));
  };

  const frame = useRef(0);
  const timer = useRef(0);
  const later = useRef(draw);
  later.current = draw;
  const redraw = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => later.current());
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const { row, column, size } = at.current;
      written.current = size <= least * 1.001 ? '' : `${row.toFixed(1)},${column.toFixed(1)},${Number(size.toPrecision(4))}`;
      props.view.value = written.current;
    }, 250);
  };
  const changes = tiles.changed.value;
  useEffect(() => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => later.current());
  }, [width, tiles, changes, colours, under?.[0], under?.[1], isDark(), props.view.value]);
  useEffect(() => () => clearTimeout(timer.current), []);

  /** Zooms by a factor around a spot of the canvas, which stays where it is; without one, the middle becomes the middle. */
  const zoom = (by: number, x?: number, y?: number) => {
    const v = at.current;
    const size = clamp(v.size * by, least, 40);
    if (x === undefined || y === undefined) {
      v.row += Math.min(tall, n * v.size) / v.size / 2 - tall / size / 2;
      v.column += Math.min(wide, m * v.size) / v.size / 2 - wide / size / 2;
      v.size = size;
      return redraw();
    }
    v.row += y / v.size - y / size;
    v.column += x / v.size - x / size;
    v.size = size;
    redraw();
  };
  const pan = (rows: number, columns: number) => {
    at.current.row += rows;
    at.current.column += columns;
    redraw();
  };
  const place = (event: MouseEvent): [number, number] => {
    const r = canvas.current!.getBoundingClientRect();
    return [event.clientX - r.left - edge.left, event.clientY - r.top];
  };
  const dragged = useRef<{ x: number; y: number } | null>(null);
  const cellAt = (event: MouseEvent): [number, number] | null => {
    const [x, y] = place(event);
    const { row, column, size } = at.current;
    const [i, j] = [Math.floor(row + y / size), Math.floor(column + x / size)];
    return x >= 0 && y >= 0 && y < tall && i < n && j < m ? [i, j] : null;
  };
  // The wheel must not scroll the page while it zooms; that needs a listener that is not passive.
  useEffect(() => {
    const c = canvas.current;
    if (!c) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      if (event.shiftKey) return pan(0, (event.deltaY || event.deltaX) / at.current.size);
      zoom(Math.exp(-event.deltaY / 400), ...place(event));
    };
    c.addEventListener('wheel', wheel, { passive: false });
    return () => c.removeEventListener('wheel', wheel);
  });
  const keys = (event: KeyboardEvent) => {
    const step = (event.shiftKey ? 300 : 60) / at.current.size;
    const moves: Record<string, () => void> = {
      ArrowUp: () => pan(-step, 0), ArrowDown: () => pan(step, 0), ArrowLeft: () => pan(0, -step), ArrowRight: () => pan(0, step),
      '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), '0': () => zoom(1e-9), Home: () => pan(-n, -m), End: () => pan(n, m),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
    setUnder(null);
  };
  /** The exact weight of a cell, or the maximum over the cells that share its pixel. */
  const weightAt = (row: number, column: number): { value: number; of: number } | null => {
    for (let depth = shown(); depth <= tiles.levels; ++depth) {
      const span = side * 2 ** depth;
      const tile = tiles.get(depth, Math.floor(row / span), Math.floor(column / span));
      if (tile?.rows) return { value: tile.values[Math.floor((row % span) / 2 ** depth) * tile.columns + Math.floor((column % span) / 2 ** depth)], of: 2 ** depth };
    }
    return null;
  };
  const seen = under && weightAt(...under);
  const depth = shown();
  const said = under && seen ? `${props.rows[under[0]]} (${under[0]}) · ${props.columns[under[1]]} (${under[1]}): ${seen.of === 1 ? full(seen.value) : t('maxOf', { n: seen.of, value: num(seen.value) })}` : t('tileKeys');
  const svg = () => {
    const c = canvas.current!;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${tall + edge.bottom}"><title>${escapeXml(props.title)}</title><rect width="100%" height="100%" fill="#fff"/><image width="${width}" height="${tall + edge.bottom}" href="${c.toDataURL('image/png')}"/></svg>`;
  };
  const part = () => {
    const { row, column, size } = at.current;
    const [r0, c0] = [Math.round(row), Math.round(column)];
    const [rows, columns] = [Math.min(24, n - r0, Math.ceil(tall / size)), Math.min(24, m - c0, Math.ceil(wide / size))];
    return Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => ({ row: r0 + i, column: c0 + j, weight: weightAt(r0 + i, c0 + j) })));
  };
  return (
    <Figure name="longmap" title={props.title} wide svg={svg} table={() => ({ header: ['row', 'column', 'weight', 'maximum over'], rows: part().flat().map((x) => [x.row, x.column, x.weight?.value ?? '', x.weight?.of ?? '']) })} json={() => part().flat()} command={props.command} note={`${t('tileNote', { rows: n, columns: m })} ${depth > 0 ? t('tilePooled', { n: 2 ** depth }) : t('tileExact')} ${t('tileScale', { high: num(scale.high) })}`}>
      {tiles.failure.value && <Failed failure={tiles.failure.value} />}
      <div class="tiles" ref={box}>
        <canvas
          ref={canvas}
          class="big"
          tabIndex={0}
          role="application"
          aria-label={`${props.title}. ${t('tileKeys')}`}
          style={{ height: `${tall + edge.bottom}px` }}
          onKeyDown={keys}
          onPointerDown={(event) => {
            canvas.current!.setPointerCapture(event.pointerId);
            dragged.current = { x: event.clientX, y: event.clientY };
          }}
          onPointerMove={(event) => {
            const from = dragged.current;
            if (!from) return setUnder(cellAt(event));
            pan((from.y - event.clientY) / at.current.size, (from.x - event.clientX) / at.current.size);
            dragged.current = { x: event.clientX, y: event.clientY };
          }}
          onPointerUp={() => (dragged.current = null)}
          onPointerCancel={() => (dragged.current = null)}
          onPointerLeave={() => setUnder(null)}
          onDblClick={(event) => zoom(4, ...place(event))}
        />
        <div class="overview">
          <canvas
            ref={small}
            width={160}
            height={Math.round((160 * Math.min(n, 2 * m)) / m)}
            role="img"
            aria-label={t('overviewLabel')}
            onPointerDown={(event) => {
              const r = event.currentTarget.getBoundingClientRect();
              at.current.row = ((event.clientY - r.top) / r.height) * n - tall / at.current.size / 2;
              at.current.column = ((event.clientX - r.left) / r.width) * m - wide / at.current.size / 2;
              redraw();
            }}
          />
          <small>{t('overviewNote')}</small>
        </div>
      </div>
      <div class="under">
        <span class="zoom" role="group" aria-label={t('zoomLabel')}>
          <button type="button" class="plain" aria-label={t('zoomOut')} onClick={() => zoom(0.5)}>
            −
          </button>
          <button type="button" class="plain" aria-label={t('zoomIn')} onClick={() => zoom(2)}>
            +
          </button>
          <button type="button" class="plain" onClick={() => zoom(1e-9)}>
            {t('zoomAll')}
          </button>
        </span>
        <Slider label={t('coloursEnd')} value={scale.high} low={1e-4} high={1} log show={num(scale.high)} set={setHigh} />
        <Legend scale={scale} label={t('weight')} />
        <span class="said" aria-live="polite">
          {said}
        </span>
        <details class="astable" onToggle={(event) => setTable(event.currentTarget.open)}>
          <summary>{t('asTable')}</summary>
          {table && (
            <div class="scroll">
              <table>
                <caption>{t('tileTable')}</caption>
                <thead>
                  <tr>
                    <td />
                    {part()[0]?.map((x) => <th scope="col">{`${props.columns[x.column]} ${x.column}`}</th>)}
                  </tr>
                </thead>
                <tbody>
                  {part().map((row) => (
                    <tr>
                      <th scope="row">{`${props.rows[row[0].row]} ${row[0].row}`}</th>
                      {row.map((x) => (
                        <td>{fixed(x.weight?.value, 4)}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </details>
      </div>
    </Figure>
  );
}
