// Vision: pick a picture or draw one, and see the classes and where the class token looked.
import { computed, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { follow, get } from '../api';
import { chosen } from '../models';
import { fixed, num } from '../num';
import { settings } from '../store';
import { BenchPage, Choice, ModelSelect, Shown, tryThis, WithModel } from '../ui';
import { rich, t } from '../words';
import { Bars } from '../views/bars';
import { bytesOf, level, scaleOf } from '../views/colours';
import { Figure } from '../views/figure';
import { AsTable, Legend } from '../views/heat';
import { I, M, N, O, Sub } from '../maths';

const side = 28;
// A drawing is one hexadecimal digit per pixel; none: the built-in picture with this number.
const s = settings('vision', { model: '', picture: 3, drawing: '', layer: 0, head: 0 });

interface Seen {
  answers: { class: string; probability: number }[];
  maps: { layer: number; head: number; values: number[][] }[];
  rollout: number[][];
  rollouts?: number[][][]; // through the first layers
  command?: string;
}
const model = computed(() => chosen('vision', s.model.value));
const given = signal<{ seed: number; pixels: number[][]; class: string } | null>(null);
async function fetchPicture(seed: number) {
  const answer = await get<{ pixels: number[][]; class: string }>(`/picture?seed=${seed}`).catch(() => null);
  if (answer && s.picture.peek() === seed) given.value = { seed, ...answer };
}
const empty = () => Array.from({ length: side }, () => new Array<number>(side).fill(0));
const decode = (text: string) => empty().map((row, y) => row.map((_, x) => (parseInt(text[y * side + x], 16) || 0) / 15));
const encode = (pixels: number[][]) => pixels.map((row) => row.map((p) => Math.round(15 * p).toString(16)).join('')).join('');
const pixels = computed(() => (s.drawing.value.length === side * side ? decode(s.drawing.value) : given.value?.pixels ?? null));
const answer = follow<Seen>(() => (model.value && pixels.value ? { path: '/classify', body: { model: model.value.id, pixels: pixels.value } } : null));

/** Paints a soft dot of the brush. */
function dab(x: number, y: number) {
  const next = (pixels.peek() ?? empty()).map((row) => row.slice());
  for (let j = Math.max(0, Math.floor(y - 2)); j <= Math.min(side - 1, y + 2); ++j) {
    for (let i = Math.max(0, Math.floor(x - 2)); i <= Math.min(side - 1, x + 2); ++i) {
      const away = Math.hypot(i + 0.5 - x, j + 0.5 - y);
      next[j][i] = Math.max(next[j][i], Math.max(0, Math.min(1, 1.7 - away)));
    }
  }
  s.drawing.value = encode(next);
}

/** The picture as a canvas to draw on: pointer, or arrow keys and the space bar. */
function Pad() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const at = useRef({ x: side / 2, y: side / 2, down: false });
  const now = pixels.value;
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const image = context.createImageData(side, side);
    for (let i = 0; i < side * side; ++i) {
      const grey = Math.round(255 * (now?.[Math.floor(i / side)][i % side] ?? 0));
      image.data.set([grey, grey, grey, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
  }, [now]);
  const paint = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const to = { x: ((event.clientX - box.left) / box.width) * side, y: ((event.clientY - box.top) / box.height) * side };
    const { x, y } = at.current;
    const steps = Math.max(1, Math.ceil(Math.hypot(to.x - x, to.y - y)));
    for (let i = 1; i <= steps; ++i) dab(x + ((to.x - x) * i) / steps, y + ((to.y - y) * i) / steps);
    Object.assign(at.current, to);
  };
  return (
    <canvas
      ref={canvas}
      class="pad"
      width={side}
      height={side}
      tabIndex={0}
      role="application"
      aria-label={t('padLabel')}
      onPointerDown={(event) => {
        const box = canvas.current!.getBoundingClientRect();
        at.current = { x: ((event.clientX - box.left) / box.width) * side, y: ((event.clientY - box.top) / box.height) * side, down: true };
        canvas.current!.setPointerCapture(event.pointerId);
        paint(event);
      }}
      onPointerMove={(event) => at.current.down && paint(event)}
      onPointerUp={() => (at.current.down = false)}
      onKeyDown={(event) => {
        const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (!by && event.key !== ' ') return;
        event.preventDefault();
        if (by) Object.assign(at.current, { x: Math.max(0, Math.min(side, at.current.x + by[0])), y: Math.max(0, Math.min(side, at.current.y + by[1])) });
        dab(at.current.x, at.current.y);
      }}
    />
  );
}

/** The drawing, pixel by pixel: saved as PNG, it is what the command reads. */
const padSvg = () =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}" shape-rendering="crispEdges">${(pixels.value ?? [])
    .flatMap((row, i) => row.map((p, j) => `<rect x="${j}" y="${i}" width="1" height="1" fill="#${Math.round(255 * p).toString(16).padStart(2, '0').repeat(3)}"/>`))
    .join('')}</svg>`;

/** The picture in grey under the weights of its patches. */
function Overlay(props: { map: number[][]; high: number; label: string; lit?: boolean; onPick?: () => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const now = pixels.value;
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || !now) return;
    const scale = { low: 0, high: props.high };
    const colours = bytesOf(scale);
    const image = context.createImageData(side, side);
    const [rows, columns] = [props.map.length, props.map[0].length];
    for (let i = 0; i < side * side; ++i) {
      const [y, x] = [Math.floor(i / side), i % side];
      const at = 3 * level(props.map[Math.floor((y * rows) / side)][Math.floor((x * columns) / side)], scale);
      const grey = 255 * now[y][x];
      for (let c = 0; c < 3; ++c) image.data[4 * i + c] = 0.6 * colours[at + c] + 0.4 * grey;
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  });
  const drawing = <canvas ref={canvas} class="seen" width={side} height={side} role="img" aria-label={props.label} />;
  if (!props.onPick) return drawing;
  return (
    <button type="button" class={props.lit ? 'thumb on' : 'thumb'} aria-pressed={!!props.lit} title={props.label} aria-label={props.label} onClick={props.onPick}>
      {drawing}
    </button>
  );
}

function Formula({ data }: { data: Seen }) {
  const best = data.answers[0];
  return (
    <p class="numbers">
      <M>
        <I>p</I>
        <O>(</O>
        <mtext>{best.class}</mtext>
        <O>)</O>
        <O>=</O>
        <mtext>softmax</mtext>
        <O>(</O>
        <I>W</I>
        <Sub of={<I>z</I>} by={<mtext>cls</mtext>} />
        <O>)</O>
        <O>=</O>
        <N>{fixed(best.probability)}</N>
      </M>
    </p>
  );
}

function Looked({ data }: { data: Seen }) {
  const layers = Math.max(...data.maps.map((map) => map.layer));
  const layer = Math.min(s.layer.value || layers, layers);
  const heads = data.maps.filter((map) => map.layer === layer);
  const head = heads.find((map) => map.head === s.head.value);
  const rolled = data.rollouts?.[layer - 1] ?? data.rollout;
  const shown = head?.values ?? rolled;
  const shared = scaleOf(heads.flatMap((map) => map.values)).high;
  const rollout = t('rollout', { layer });
  const title = head ? t('patchMap', { layer, head: head.head }) : rollout;
  const numbers = Array.from({ length: layers }, (_, i) => i + 1);
  return (
    <Figure
      name="patches"
      title={title}
      svg={() => {
        const picture = document.querySelector<HTMLCanvasElement>('[data-figure="patches"] .drawing > canvas')!;
        return `<svg xmlns="http://www.w3.org/2000/svg" width="448" height="448"><image width="448" height="448" style="image-rendering: pixelated" href="${picture.toDataURL('image/png')}"/></svg>`;
      }}
      table={() => ({ header: ['row', ...shown[0].map((_, i) => String(i + 1))], rows: shown.map((row, i) => [i + 1, ...row]) })}
      json={() => ({ maps: data.maps, rollout: data.rollout })}
      note={t('patchNote', { high: num(head ? shared : scaleOf(rolled).high) })}
    >
      <div class="controls">
        <Choice label={t('layer')} value={layer} options={numbers} set={(n) => (s.layer.value = n)} />
      </div>
      <Overlay map={shown} high={head ? shared : scaleOf(rolled).high} label={title} />
      <div class="thumbs">
        <Overlay map={rolled} high={scaleOf(rolled).high} label={rollout} lit={!head} onPick={() => (s.head.value = 0)} />
        {heads.map((map) => (
          <Overlay map={map.values} high={shared} label={t('patchMap', { layer, head: map.head })} lit={map === head} onPick={() => (s.head.value = map.head)} />
        ))}
      </div>
      <div class="under">
        <Legend scale={{ low: 0, high: head ? shared : scaleOf(rolled).high }} label={t('weight')} />
        <AsTable values={shown} rows={[]} columns={[]} label={title} />
      </div>
    </Figure>
  );
}

export function Vision() {
  const { data } = answer.value;
  const seed = s.picture.value;
  useEffect(() => void fetchPicture(seed), [seed]);
  return (
    <BenchPage
      title={t('visionTitle')}
      notice={rich('visionNotice')}
      formula={data ? <Formula data={data} /> : undefined}
      tries={[
        tryThis('vision', 'tryStar', 'tryStarAsk', { picture: 13 }),
        tryThis('vision', 'tryWaves', 'tryWavesAsk', { picture: 25 }),
        tryThis('vision', 'tryEmpty', 'tryEmptyAsk', { drawing: '0'.repeat(side * side) }),
      ]}
    >
      <WithModel task="vision" id={s.model.value}>
        {() => (
          <>
            <div class="controls top">
              <ModelSelect task="vision" id={s.model} />
              <button type="button" class="plain" onClick={() => ((s.drawing.value = ''), (s.picture.value = seed + 1))}>
                {t('nextPicture')}
              </button>
              <button type="button" class="plain" onClick={() => (s.drawing.value = '0'.repeat(side * side))}>
                {t('clearPad')}
              </button>
              {!s.drawing.value && given.value && <span class="soft level">{t('itIs', { class: given.value.class })}</span>}
            </div>
            <div class="triple even">
              <Figure name="picture" title={t('padTitle')} svg={padSvg} json={() => pixels.value} note={t('padNote')}>
                <Pad />
              </Figure>
              {data && pixels.value && <Looked data={data} />}
              <Shown of={answer} height={300}>
                {(now) => (
                  <Figure name="classes" title={t('classesTitle')} noPicture table={() => ({ header: ['class', 'probability'], rows: now.answers.map((a) => [a.class, a.probability]) })} json={() => now.answers} command={now.command}>
                    <Bars label={t('classesTitle')} bars={now.answers.map((a, i) => ({ label: a.class, value: a.probability, on: i === 0 }))} high={1} />
                  </Figure>
                )}
              </Shown>
            </div>
          </>
        )}
      </WithModel>
    </BenchPage>
  );
}
