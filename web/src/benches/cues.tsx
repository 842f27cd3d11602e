// Cues: five things on a desk. What you want is the query, and the light falls where attention goes.
import { useRef } from 'preact/hooks';
import { follow } from '../api';
import { fixed, num } from '../num';
import { hover, point, settings } from '../store';
import { BenchPage, Choice, Shown, Slider, tryThis } from '../ui';
import { Key, rich, t } from '../words';
import { Bars } from '../views/bars';
import { Figure } from '../views/figure';
import { I, M, N, O, Sub, Sum, Xi } from '../maths';

const s = settings('cues', { x: 0.25, y: 0.5, pooling: 'query', temperature: 0.05 });
// A place on the desk says what a thing is for: drinking to the left, reading to the right, the far side for neither.
const things = [
  { name: 'coffee', at: [0.16, 0.34], salience: 2.2 },
  { name: 'water', at: [0.34, 0.66], salience: 0.4 },
  { name: 'book', at: [0.8, 0.36], salience: 0.9 },
  { name: 'paper', at: [0.66, 0.72], salience: 0.6 },
  { name: 'plant', at: [0.5, 0.2], salience: 1 },
] as const;
const wishes = { drink: [0.25, 0.5], read: [0.73, 0.54], nothing: [0.5, 0.5] } as const;

interface Cued {
  weights: number[];
  scores: number[];
  answer: [number, number];
  command?: string;
}
const answer = follow<Cued>(() => ({
  path: '/cues',
  body: { want: [s.x.value, s.y.value], things: things.map((one) => ({ ...one, at: [...one.at] })), pooling: s.pooling.value, temperature: s.temperature.value },
}));

const [W, H] = [760, 400];
const shapes: Record<string, preact.JSX.Element> = {
  coffee: <path d="M-24-18h40v26a12 12 0 0 1-12 12h-16a12 12 0 0 1-12-12zM16-10h8a8 8 0 0 1 0 18h-8" />,
  water: <path d="M-16-28h32l-5 52h-22zM-13-4h26" />,
  book: <path d="M-30-20q16-8 30 2 14-10 30-2v38q-16-8-30 2-14-10-30-2zM0-18v38" />,
  paper: <path d="M-20-26h28l12 12v40h-40zM8-26v12h12M-12-4h24M-12 6h24M-12 16h16" />,
  plant: <path d="M-14 4h28l-4 22h-20zM0 4q-4-22-22-26 0 18 22 26 4-24 20-28 2 18-20 28z" />,
};

function Desk({ data }: { data: Cued }) {
  const svg = useRef<SVGSVGElement>(null);
  const set = (x: number, y: number) => {
    s.x.value = Number(Math.max(0.02, Math.min(0.98, x)).toFixed(3));
    s.y.value = Number(Math.max(0.04, Math.min(0.96, y)).toFixed(3));
  };
  const drag = (event: PointerEvent) => {
    const box = svg.current!.getBoundingClientRect();
    set((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  };
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    set(s.x.value + 0.02 * by[0], s.y.value + 0.03 * by[1]);
  };
  return (
    <svg
      ref={svg}
      class="desk"
      viewBox={`0 0 ${W} ${H}`}
      onPointerDown={(event) => (svg.current!.setPointerCapture(event.pointerId), drag(event))}
      onPointerMove={(event) => event.buttons && drag(event)}
    >
      <rect class="top" x={1} y={1} width={W - 2} height={H - 2} rx={18} />
      {things.map((one, i) => {
        const [x, y] = [one.at[0] * W, one.at[1] * H];
        const lit = hover.value?.column === i;
        return (
          <g class={lit ? 'thing on' : 'thing'} onMouseEnter={() => point(undefined, i)} onMouseLeave={() => point()}>
            <circle class="light" cx={x} cy={y} r={30 + 58 * Math.sqrt(data.weights[i])} opacity={0.12 + 0.75 * data.weights[i]} />
            <g transform={`translate(${x} ${y})`}>{shapes[one.name]}</g>
            <text x={x} y={y + 48} text-anchor="middle">
              {t(`thing_${one.name}` as Key)} {fixed(data.weights[i], 2)}
            </text>
          </g>
        );
      })}
      <line class="pull" x1={s.x.value * W} y1={s.y.value * H} x2={data.answer[0] * W} y2={data.answer[1] * H} />
      <g tabindex={0} role="slider" aria-label={t('wantLabel')} aria-valuetext={`${num(s.x.value)}, ${num(s.y.value)}`} aria-valuenow={s.x.value} onKeyDown={keys} class="want" transform={`translate(${s.x.value * W} ${s.y.value * H})`}>
        <circle r={13} />
        <text text-anchor="middle" dy={4.5}>
          q
        </text>
      </g>
      <circle class="answerdot" cx={data.answer[0] * W} cy={data.answer[1] * H} r={7} />
    </svg>
  );
}

function Formula({ data }: { data: Cued }) {
  const best = data.weights.indexOf(Math.max(...data.weights));
  return (
    <>
      <M block>
        <I>f</I>
        <O>(</O>
        <I>q</I>
        <O>)</O>
        <O>=</O>
        <Sum over={<I>i</I>} />
        <Xi x="α" />
        <Xi x="v" />
      </M>
      <p class="numbers">
        <M>
          <Sub of={<I>α</I>} by={<mtext>{t(`thing_${things[best].name}` as Key)}</mtext>} />
          <O>=</O>
          <N>{fixed(data.weights[best])}</N>
          <O>,</O>
          <mtext>{t('score')}</mtext>
          <O>=</O>
          <N>{num(data.scores[best])}</N>
        </M>
      </p>
    </>
  );
}

export function Cues() {
  const { data } = answer.value;
  const wish = (Object.keys(wishes) as (keyof typeof wishes)[]).find((name) => wishes[name][0] === s.x.value && wishes[name][1] === s.y.value);
  return (
    <BenchPage
      title={t('cuesTitle')}
      notice={rich('cuesNotice')}
      formula={data ? <Formula data={data} /> : undefined}
      tries={[
        tryThis('cues', 'trySalience', 'trySalienceAsk', { pooling: 'salience', temperature: 0.5 }),
        tryThis('cues', 'tryRead', 'tryReadAsk', { x: wishes.read[0], y: wishes.read[1] }),
        tryThis('cues', 'tryAverage', 'tryAverageAsk', { pooling: 'average' }),
      ]}
    >
      <Shown of={answer} height={420}>
        {(now) => (
          <>
            <Figure name="desk" title={t('deskTitle')} wide table={() => ({ header: ['thing', 'score', 'weight'], rows: things.map((one, i) => [one.name, now.scores[i], now.weights[i]]) })} json={() => now} command={now.command} note={t('deskNote')}>
              <Desk data={now} />
            </Figure>
            <div class="pair">
              <div class="controls">
                <Choice label={t('want')} value={wish ?? ''} options={Object.keys(wishes).map((value) => ({ value, label: t(`want_${value}` as Key) }))} set={(value) => ((s.x.value = wishes[value as 'drink'][0]), (s.y.value = wishes[value as 'drink'][1]), (s.pooling.value = 'query'))} />
                <Choice label={t('pooling')} value={s.pooling.value} options={['average', 'max', 'salience', 'query'].map((value) => ({ value, label: t(`pooling_${value}` as Key) }))} set={(value) => (s.pooling.value = value)} />
                <Slider label={t('temperature')} value={s.temperature.value} low={0.005} high={5} log set={(value) => (s.temperature.value = value)} />
              </div>
              <Figure name="weights" title={t('weightsTitle')} noPicture table={() => ({ header: ['thing', 'weight'], rows: things.map((one, i) => [one.name, now.weights[i]]) })} json={() => now.weights} command={now.command}>
                <Bars label={t('weightsTitle')} high={1} bars={things.map((one, i) => ({ label: t(`thing_${one.name}` as Key), value: now.weights[i], on: hover.value?.column === i, onPoint: (on) => (on ? point(undefined, i) : point()) }))} />
              </Figure>
            </div>
          </>
        )}
      </Shown>
    </BenchPage>
  );
}
