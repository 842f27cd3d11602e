// A heat map on canvas: words at its sides, one cell lit in every view, a table for readers who do not see it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { escapeXml } from '../export';
import { fixed, full } from '../num';
import { hover, isDark, point, ramp } from '../store';
import { t } from '../words';
import { useWidth } from '../ui';
import { bytesOf, colour, level, Scale } from './colours';

export interface HeatProps {
  values: number[][];
  rows: string[];
  columns: string[];
  scale: Scale;
  label: string;
  boxes?: [number, number][]; // gold links, drawn as frames
  litRow?: number;
  linked?: boolean; // shares what is pointed at with the other views of the bench
  maxCell?: number;
  rowName?: string;
  columnName?: string;
  onPick?: (row: number, column: number) => void;
  small?: boolean; // no labels, no tooltip: one of many
  legend?: string;
  tall?: number; // height in pixels, where cells need not be square
}

let measure: CanvasRenderingContext2D | null = null;
const font = '13px system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif';
export function textWidth(text: string, at = font): number {
  measure ??= document.createElement('canvas').getContext('2d')!;
  measure.font = at;
  return measure.measureText(text).width;
}

const clip = (text: string, most: number) => {
  if (textWidth(text) <= most) return text;
  let short = text;
  while (short.length > 1 && textWidth(`${short}…`) > most) short = short.slice(0, -1);
  return `${short}…`;
};

export function layout(props: HeatProps, width: number) {
  const count = [props.values.length, props.values[0]?.length ?? 0];
  if (props.small) {
    return { left: 0, bottom: 0, cw: width / count[1], ch: (props.tall ?? width * Math.min(1.4, count[0] / count[1])) / count[0], turned: false };
  }
  const labels = Math.min(width * 0.28, 130);
  const left = props.rows.length ? Math.min(labels, Math.max(0, ...props.rows.map((r) => textWidth(r)))) + 8 : 0;
  const widest = props.columns.length ? Math.max(0, ...props.columns.map((c) => Math.min(110, textWidth(c)))) : 0;
  const sparse = props.columns.length / Math.max(1, props.columns.filter(Boolean).length); // labels of some columns only
  const fit = (room: number) => Math.min(props.maxCell ?? 34, (width - left - room) / Math.max(1, count[1]));
  const turned = widest + 6 > fit(4) * sparse;
  // A turned label of the last column reaches over the edge.
  const last = turned ? Math.min(80, textWidth(props.columns[props.columns.length - 1] ?? '') * 0.72) : 0;
  const cw = fit(Math.max(4, last - (props.maxCell ?? 34) / 2 + 6));
  const bottom = props.columns.length ? (turned ? widest * 0.72 + 18 : 22) : 0;
  const ch = props.tall ? props.tall / count[0] : Math.max(2, Math.min(cw, 34));
  return { left, bottom, cw, ch: props.rows.length && !props.tall ? Math.max(ch, Math.min(17, cw * 1.6)) : ch, turned };
}

/** The same map as SVG text, for files. */
export function heatSvg(props: HeatProps, width = 640): string {
  const { left, bottom, cw, ch, turned } = layout(props, width);
  const [n, m] = [props.values.length, props.values[0]?.length ?? 0];
  const w = Math.ceil(left + cw * m + 4);
  const h = Math.ceil(ch * n + bottom);
  let out = `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="sans-serif" font-size="13"><rect width="${w}" height="${h}" fill="#fff"/>`;
  props.values.forEach((row, i) =>
    row.forEach((x, j) => {
      out += `<rect x="${(left + j * cw).toFixed(2)}" y="${(i * ch).toFixed(2)}" width="${cw.toFixed(2)}" height="${ch.toFixed(2)}" fill="${colour(x, props.scale)}"/>`;
    }),
  );
  for (const [i, j] of props.boxes ?? []) {
    out += `<rect x="${left + j * cw + 1}" y="${i * ch + 1}" width="${cw - 2}" height="${ch - 2}" fill="none" stroke="#ff6b4a" stroke-width="2"/>`;
  }
  props.rows.forEach((r, i) => {
    out += `<text x="${left - 6}" y="${(i + 0.5) * ch + 4}" text-anchor="end">${escapeXml(clip(r, left - 6))}</text>`;
  });
  props.columns.forEach((c, j) => {
    const x = left + (j + 0.5) * cw;
    const y = n * ch + 14;
    out += turned
      ? `<text transform="translate(${x},${y}) rotate(45)" dy="2">${escapeXml(clip(c, 110))}</text>`
      : `<text x="${x}" y="${y + 2}" text-anchor="middle">${escapeXml(c)}</text>`;
  });
  return `${out}</svg>`;
}

function paint(canvas: HTMLCanvasElement, props: HeatProps, width: number, lit: { row?: number; column?: number } | null) {
  const { left, bottom, cw, ch, turned } = layout(props, width);
  const [n, m] = [props.values.length, props.values[0]?.length ?? 0];
  const height = Math.ceil(ch * n + bottom);
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const g = canvas.getContext('2d')!;
  g.scale(ratio, ratio);
  const image = new ImageData(Math.max(1, m), Math.max(1, n));
  const bytes = bytesOf(props.scale);
  for (let i = 0, at = 0; i < n; ++i) {
    for (let j = 0; j < m; ++j, at += 4) {
      const from = 3 * level(props.values[i][j], props.scale);
      image.data[at] = bytes[from];
      image.data[at + 1] = bytes[from + 1];
      image.data[at + 2] = bytes[from + 2];
      image.data[at + 3] = 255;
    }
  }
  const cells = document.createElement('canvas');
  cells.width = Math.max(1, m);
  cells.height = Math.max(1, n);
  cells.getContext('2d')!.putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(cells, left, 0, cw * m, ch * n);
  const style = getComputedStyle(document.documentElement);
  const [ink, soft, accent, gold] = ['--ink', '--soft', '--accent', '--second'].map((name) => style.getPropertyValue(name).trim());
  if (cw > 9 && ch > 9 && !props.small) {
    g.strokeStyle = isDark() ? 'rgba(0,0,0,.35)' : 'rgba(255,255,255,.18)';
    g.lineWidth = 1;
    g.beginPath();
    for (let i = 1; i < n; ++i) g.moveTo(left, Math.round(i * ch) + 0.5), g.lineTo(left + cw * m, Math.round(i * ch) + 0.5);
    for (let j = 1; j < m; ++j) g.moveTo(Math.round(left + j * cw) + 0.5, 0), g.lineTo(Math.round(left + j * cw) + 0.5, ch * n);
    g.stroke();
  }
  for (const [i, j] of props.boxes ?? []) {
    g.lineWidth = 2.5;
    g.strokeStyle = gold;
    g.strokeRect(left + j * cw + 1.5, i * ch + 1.5, cw - 3, ch - 3);
  }
  const row = lit?.row ?? props.litRow;
  if (row !== undefined && row < n) {
    g.strokeStyle = '#fff';
    g.lineWidth = 1.5;
    g.setLineDash(props.small ? [] : [6, 4]);
    if (ch < 6) {
      g.beginPath();
      g.moveTo(left, (row + 0.5) * ch);
      g.lineTo(left + cw * m, (row + 0.5) * ch);
      g.stroke();
    } else g.strokeRect(left + 1, row * ch + 1, cw * m - 2, ch - 2);
    g.setLineDash([]);
  }
  if (lit?.column !== undefined && lit.column < m && cw > 4) {
    g.strokeStyle = 'rgba(255,255,255,.7)';
    g.lineWidth = 1.5;
    g.strokeRect(left + lit.column * cw + 1, 1, cw - 2, ch * n - 2);
  }
  if (props.small) return;
  g.font = font;
  g.textBaseline = 'middle';
  g.textAlign = 'right';
  const every = Math.max(1, Math.ceil(14 / ch));
  props.rows.forEach((label, i) => {
    if (i % every && lit?.row !== i) return;
    g.fillStyle = row === i ? accent : lit ? soft : ink;
    g.fillText(clip(label, left - 6), left - 6, (i + 0.5) * ch);
  });
  const skip = Math.max(1, Math.ceil((turned ? 13 : 0) / cw));
  props.columns.forEach((label, j) => {
    if (j % skip && lit?.column !== j) return;
    g.fillStyle = lit?.column === j ? accent : lit ? soft : ink;
    g.save();
    g.translate(left + (j + 0.5) * cw, n * ch + (turned ? 9 : 13));
    if (turned) g.rotate(Math.PI / 4);
    g.textAlign = turned ? 'left' : 'center';
    g.fillText(clip(label, 110), 0, 0);
    g.restore();
  });
}

export function Heat(props: HeatProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [own, setOwn] = useState<{ row?: number; column?: number } | null>(null);
  const lit = props.linked ? hover.value : own;
  const mode = `${isDark()}${ramp.value}`;
  useEffect(() => {
    if (width && canvas.current) paint(canvas.current, props, width, props.small ? null : lit);
  }, [width, props.values, props.boxes, props.litRow, lit, mode, props.scale.high, props.rows.join(), props.columns.join()]);
  const light = (row?: number, column?: number) => {
    if (props.linked) point(row, column);
    else setOwn(row === undefined ? null : { row, column });
  };
  const cellAt = (event: MouseEvent): [number, number] | null => {
    const { left, cw, ch } = layout(props, width);
    const spot = canvas.current!.getBoundingClientRect();
    const j = Math.floor((event.clientX - spot.left - left) / cw);
    const i = Math.floor((event.clientY - spot.top) / ch);
    return i >= 0 && i < props.values.length && j >= 0 && j < props.values[0].length ? [i, j] : null;
  };
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const now = lit ?? {};
    if (step) {
      event.preventDefault();
      const bound = (x: number, n: number) => Math.max(0, Math.min(n - 1, x));
      light(bound((now.row ?? 0) + step[0], props.values.length), bound((now.column ?? 0) + step[1], props.values[0].length));
    } else if (event.key === 'Enter' && now.row !== undefined) props.onPick?.(now.row, now.column ?? 0);
    else if (event.key === 'Escape') light();
  };
  const at = lit && lit.row !== undefined && lit.column !== undefined ? props.values[lit.row]?.[lit.column] : undefined;
  const said = at === undefined ? '' : `${props.rows[lit!.row!] ?? lit!.row} · ${props.columns[lit!.column!] ?? lit!.column}: ${full(at)}`;
  if (props.small) {
    return (
      <div class="heat small" ref={box}>
        <canvas ref={canvas} aria-hidden="true" />
      </div>
    );
  }
  return (
    <div class="heat">
      <div ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`${props.label}. ${t('heatKeys')}`}
          onMouseMove={(event) => {
            const cell = cellAt(event);
            light(cell?.[0], cell?.[1]);
          }}
          onMouseLeave={() => light()}
          onClick={(event) => {
            const cell = cellAt(event);
            if (cell) props.onPick?.(...cell);
          }}
          onKeyDown={keys}
          onBlur={() => light()}
        />
      </div>
      <div class="under">
        <Legend scale={props.scale} label={props.legend ?? t('weight')} />
        <span class="said" aria-live="polite">
          {said || (props.rowName && `${t('rowIs')}: ${props.rowName} · ${t('columnIs')}: ${props.columnName}`)}
        </span>
        <AsTable {...props} />
      </div>
    </div>
  );
}

export function Legend({ scale, label }: { scale: Scale; label: string }) {
  const strip = useRef<HTMLCanvasElement>(null);
  const mode = ramp.value;
  useEffect(() => {
    const g = strip.current!.getContext('2d')!;
    const bytes = bytesOf(scale);
    for (let i = 0; i < 64; ++i) {
      const at = 3 * i * 4;
      g.fillStyle = `rgb(${bytes[at]},${bytes[at + 1]},${bytes[at + 2]})`;
      g.fillRect(i, 0, 1, 8);
    }
  }, [mode, scale.diverging]);
  const digits = Math.abs(scale.high) >= 10 ? 1 : Number.isInteger(scale.high) ? 0 : 2;
  return (
    <span class="legend">
      {label} {scale.low === 0 ? '0' : fixed(scale.low, digits)}
      <canvas ref={strip} width={64} height={8} aria-hidden="true" />
      {fixed(scale.high, digits)}
    </span>
  );
}

/** The numbers themselves, written only when asked for. */
export function AsTable(props: Pick<HeatProps, 'values' | 'rows' | 'columns' | 'label'>) {
  const [open, setOpen] = useState(false);
  return (
    <details class="astable" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('asTable')}</summary>
      {open && (
        <div class="scroll">
          <table>
            <caption>{props.label}</caption>
            <thead>
              <tr>
                <td />
                {props.values[0].map((_, j) => (
                  <th scope="col">{props.columns[j] ?? j}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {props.values.map((row, i) => (
                <tr>
                  <th scope="row">{props.rows[i] ?? i}</th>
                  {row.map((x) => (
                    <td>{fixed(x)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
