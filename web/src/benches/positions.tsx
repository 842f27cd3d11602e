// Positions: encodings of places as a map, as clock hands and against distance, and what a shuffle does.
import { computed } from '@preact/signals';
import { follow } from '../api';
import { fixed, num } from '../num';
import { settings } from '../store';
import { BenchPage, Choice, Shown, Slider, tryThis, useWidth } from '../ui';
import { Key, rich, t } from '../words';
import { scaleOf } from '../views/colours';
import { Curve, CurveProps, curveSvg } from '../views/curve';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { Frac, I, M, N, O, Row, Sub, Sup } from '../maths';

const s = settings('positions', { kind: 'sinusoidal', length: 32, width: 32, offset: 5, order: 'reversed' });
const kinds = ['none', 'sinusoidal', 'learned', 'rotary', 'relative', 'alibi'] as const;

interface Positions {
  kind: string;
  map: number[][];
  hands: { pair: number; speed: number; angle: number }[];
  dot: { distance: number; value: number }[];
  outputs: { plain: number[][]; shuffled: number[][]; order: number[]; permuted: boolean; largest: number };
  command?: string;
}

const order = computed(() => {
  const all = Array.from({ length: s.length.value }, (_, i) => i);
  if (s.order.value === 'reversed') return all.reverse();
  [all[0], all[all.length - 1]] = [all[all.length - 1], all[0]];
  return all;
});
const answer = follow<Positions>(() => ({
  path: '/positions',
  body: { kind: s.kind.value, length: s.length.value, width: s.width.value, offset: s.offset.value, order: order.value },
}));

function Formula({ data }: { data: Positions }) {
  const second = data.hands[1] ?? data.hands[0];
  if (!second) return null;
  return (
    <>
      <M block>
        <Sub of={<I>θ</I>} by={<I>j</I>} />
        <O>(</O>
        <I>i</I>
        <O>)</O>
        <O>=</O>
        <Frac
          over={<I>i</I>}
          under={
            <Sup
              of={<mn>10000</mn>}
              to={
                <Row>
                  <mn>2</mn>
                  <I>j</I>
                  <O>/</O>
                  <I>d</I>
                </Row>
              }
            />
          }
        />
      </M>
      <p class="numbers">
        <M>
          <Sub of={<I>θ</I>} by={<mn>{second.pair}</mn>} />
          <O>(</O>
          <N>{s.offset.value}</N>
          <O>)</O>
          <O>=</O>
          <N>{s.offset.value}</N>
          <O>·</O>
          <N>{num(second.speed)}</N>
          <O>=</O>
          <N>{num(s.offset.value * second.speed)}</N>
        </M>
      </p>
    </>
  );
}

/** One clock per pair of dimensions: the hand at place 0 points up, the other is where the offset turned it. */
function Clocks({ data }: { data: Positions }) {
  const shown = data.hands.filter((_, i) => i % Math.max(1, Math.ceil(data.hands.length / 8)) === 0).slice(0, 8);
  const size = 92;
  const [box, width] = useWidth<HTMLDivElement>();
  const columns = Math.min(shown.length, width < 560 ? 4 : 8);
  const rows = Math.ceil(shown.length / columns);
  return (
    <div ref={box}>
    <svg viewBox={`0 0 ${size * columns} ${(size + 22) * rows}`} style={{ width: '100%', maxHeight: `${170 * rows}px` }} role="img" aria-label={t('clocksLabel', { offset: s.offset.value })}>
      {shown.map((hand, i) => {
        const [x, y, r] = [size * ((i % columns) + 0.5), (size + 22) * Math.floor(i / columns) + size / 2, size / 2 - 10];
        return (
          <g>
            <circle cx={x} cy={y} r={r} class="clock" />
            <line x1={x} y1={y} x2={x} y2={y - r} class="rest" />
            <line x1={x} y1={y} x2={x + r * Math.sin(hand.angle)} y2={y - r * Math.cos(hand.angle)} class="hand" />
            <text x={x} y={y + size / 2 + 14} text-anchor="middle">
              {t('pairN', { n: hand.pair })}
            </text>
          </g>
        );
      })}
    </svg>
    </div>
  );
}

function Picture({ data }: { data: Positions }) {
  const square = data.kind === 'relative' || data.kind === 'alibi';
  const numbers = (n: number, every: number) => Array.from({ length: n }, (_, i) => (i % every ? '' : String(i)));
  const map: HeatProps = {
    values: data.map,
    rows: numbers(data.map.length, 8),
    columns: numbers(data.map[0]?.length ?? 0, 8),
    scale: scaleOf(data.map, 'signed'),
    label: t(square ? 'biasMap' : 'placeMap'),
    maxCell: 30,
    tall: 300,
    legend: t('valueIs'),
    rowName: t(square ? 'queryRow' : 'place'),
    columnName: t(square ? 'keyColumn' : 'dimension'),
  };
  const curve: CurveProps = {
    x: data.dot.map((d) => d.distance),
    series: [{ label: t(square ? 'bias' : 'dotProduct'), values: data.dot.map((d) => d.value) }],
    xLabel: t('distance'),
    height: 240,
    label: t('dotTitle'),
  };
  const { plain, shuffled, order: moved, permuted, largest } = data.outputs;
  const both = scaleOf([...plain, ...shuffled], 'signed');
  const expected = moved.map((i) => plain[i]); // rows in the new order: a picture beside a picture
  const side = (values: number[][], label: string): HeatProps => ({ values, rows: [], columns: [], scale: both, label, maxCell: 1000, tall: 180, legend: t('valueIs') });
  const mapTable = (values: number[][]) => ({ header: ['', ...(values[0] ?? []).map((_, i) => String(i))], rows: values.map((row, i) => [i, ...row]) });
  return (
    <>
      <div class="pair wide-left">
        <Figure name="positions" title={map.label} svg={() => heatSvg(map)} table={() => mapTable(data.map)} json={() => data.map} command={data.command}>
          <Heat {...map} />
        </Figure>
        <Figure name="distance" title={t('dotTitle')} svg={() => curveSvg(curve)} table={() => ({ header: ['distance', 'value'], rows: data.dot.map((d) => [d.distance, d.value]) })} json={() => data.dot} command={data.command}>
          <Curve {...curve} />
        </Figure>
      </div>
      {data.hands.length > 0 && (
        <Figure name="clocks" title={t('clocksTitle', { offset: s.offset.value })} wide json={() => data.hands} command={data.command} note={t('clocksNote')}>
          <Clocks data={data} />
        </Figure>
      )}
      <Figure name="shuffle" title={t('shuffleTitle')} wide svg={() => heatSvg(side(shuffled, t('shuffledOut')))} table={() => mapTable(shuffled)} json={() => data.outputs} command={data.command} note={rich(permuted ? 'shuffleSame' : 'shuffleDiffers', { largest: num(largest) })}>
        <div class="pair">
          <div>
            <p class="soft">{t('movedOut')}</p>
            <Heat {...side(expected, t('movedOut'))} />
          </div>
          <div>
            <p class="soft">{t('shuffledOut')}</p>
            <Heat {...side(shuffled, t('shuffledOut'))} />
          </div>
        </div>
      </Figure>
    </>
  );
}

export function Positions() {
  const { data } = answer.value;
  return (
    <BenchPage
      title={t('positionsTitle')}
      notice={rich('positionsNotice')}
      formula={data?.hands.length ? <Formula data={data} /> : undefined}
      tries={[
        tryThis('positions', 'tryTurn', 'tryTurnAsk', { offset: 6 }),
        tryThis('positions', 'tryNone', 'tryNoneAsk', { kind: 'none' }),
        tryThis('positions', 'tryAlibi', 'tryAlibiAsk', { kind: 'alibi' }),
      ]}
    >
      <div class="controls top">
        <Choice label={t('encoding')} value={s.kind.value} options={kinds.map((kind) => ({ value: kind as string, label: t(`positions_${kind}` as Key) }))} set={(kind) => (s.kind.value = kind)} />
        <Slider label={t('offset')} value={s.offset.value} low={0} high={64} step={1} show={fixed(s.offset.value, 0)} set={(n) => (s.offset.value = n)} />
        <Choice label={t('dimensions')} value={s.width.value} options={[8, 16, 32, 64]} set={(n) => (s.width.value = n)} />
        <Choice label={t('tokenOrder')} value={s.order.value} options={['reversed', 'swapped'].map((value) => ({ value, label: t(`order_${value}` as Key) }))} set={(value) => (s.order.value = value)} />
      </div>
      <Shown of={answer} height={420}>
        {(now) => <Picture data={now} />}
      </Shown>
    </BenchPage>
  );
}
