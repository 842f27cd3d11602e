// Regression: drag points, change the width, and see kernel regression as attention.
import { computed, signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';
import { follow, post } from '../api';
import { takeText } from '../bring';
import { fixed, num } from '../num';
import { isMatrix, settings } from '../store';
import { BenchPage, Choice, Empty, Shown, Slider, tryThis } from '../ui';
import { Key, rich, t } from '../words';
import { scaleOf } from '../views/colours';
import { Curve, CurveProps, curveSvg } from '../views/curve';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { rangeOf, Scatter } from '../views/scatter';
import { I, M, O, Sum, Xi } from '../maths';
import { bookPoints, bookTruth } from './book_points';

type Point = [number, number];
const s = settings('regression', {
  points: null as Point[] | null,
  kernel: 'gaussian',
  fit: 'constant',
  h: 0.35,
  choose: 'hand', // hand, rule or cv
  at: 2.2,
}, { points: (value) => isMatrix(value, 2) });
const kernels = ['gaussian', 'boxcar', 'epanechnikov', 'triangular'] as const;

interface Regress {
  bandwidth: number;
  grid: number[];
  fit: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  at?: { x: number; prediction: number | null; weights: number[]; effective: number };
  map?: { rows: number[]; weights: number[][] };
  leave_one_out?: { bandwidths: number[]; errors: (number | null)[]; now?: number | null };
  command?: string;
}

// The mean of all points has no width that anybody could choose.
const byHand = () => s.choose.value === 'hand' || s.fit.value === 'average';

const points = computed<Point[]>(() => s.points.value ?? bookPoints);
const span = computed(() => {
  const xs = points.value.map((p) => p[0]);
  return rangeOf(xs, 0, 5);
});
export const answer = follow<Regress>(() =>
  points.value.length > 1
    ? {
        path: '/regress',
        body: {
          x: points.value.map((p) => p[0]),
          y: points.value.map((p) => p[1]),
          kernel: s.kernel.value,
          bandwidth: byHand() ? s.h.value : s.choose.value,
          fit: s.fit.value,
          grid: { low: span.value[0], high: span.value[1], count: 101 },
          at: s.at.value,
          level: 0.95,
        },
      }
    : null,
);

interface Learned {
  w: number[];
  loss: number[];
}
const learned = signal<Learned | null>(null);
const learning = signal(false);

/** Five epochs of the book's learned width, from the width of the moment; then the slider walks through them. */
async function train() {
  learning.value = true;
  try {
    const xs = points.peek().map((p) => p[0]);
    const ys = points.peek().map((p) => p[1]);
    const result = await post<Learned>('/regress/learn', { x: xs, y: ys, epochs: 5, rate: 0.5, start: 1 / s.h.peek() });
    learned.value = result;
    s.choose.value = 'hand';
    for (const w of result.w) {
      s.h.value = Number(Math.max(0.03, Math.min(10, 1 / Math.abs(w))).toPrecision(4));
      await new Promise((next) => setTimeout(next, 350));
    }
  } catch (problem) {
    learned.value = null;
  }
  learning.value = false;
}

function Formula({ data }: { data: Regress }) {
  if (!data.at) return null;
  const { weights, prediction, effective, x } = data.at;
  const order = weights.map((w, i) => [w, i] as const).sort((a, b) => b[0] - a[0]).slice(0, 3);
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
      <p class="numbers num">
        f(<b class="accent">{fixed(x, 2)}</b>) ={' '}
        {order.map(([w, i], k) => (
          <>
            {k > 0 && ' + '}
            <span class="term">
              <b class="accent">{fixed(w)}</b> · {fixed(points.value[i]?.[1], 2)}
            </span>
          </>
        ))}
        {weights.length > 3 && ' + …'}{' '}
        <span class="term">
          = <b class="accent">{num(prediction, 4)}</b>
        </span>
      </p>
      <p class="soft">{rich('listensToKeys', { effective: num(effective), keys: weights.length })}</p>
    </>
  );
}

function WidthCurve({ data }: { data: Regress }) {
  const loo = data.leave_one_out;
  if (!loo?.bandwidths?.length) return null;
  const curve: CurveProps = {
    x: loo.bandwidths,
    series: [{ label: t('leftOutError'), values: loo.errors }],
    xLabel: t('width'),
    logX: true,
    height: 210,
    marker: data.bandwidth,
    label: t('looTitle'),
    onPick: (x) => {
      s.choose.value = 'hand';
      s.h.value = Number(x.toPrecision(3));
    },
  };
  return (
    <Figure
      name="left-out"
      title={t('looTitle')}
      svg={() => curveSvg(curve)}
      table={() => ({ header: ['bandwidth', 'error'], rows: loo.bandwidths.map((b, i) => [b, loo.errors[i] ?? '']) })}
      json={() => loo}
      note={loo.now !== undefined && loo.now !== null ? t('looNow', { error: num(loo.now) }) : undefined}
    >
      <Curve {...curve} />
    </Figure>
  );
}

const mostPoints = 400; // they are part of the address
const mostRead = 4000;
/** What became of a pasted table: a sentence, and whether points were found. */
const pasted = signal<{ key: Key; values?: Record<string, string | number> } | null>(null);

/** Lines of a text, at most `mostRead`, evenly spread over all of them; and how many there are. */
function someLines(text: string): { lines: [number, string][]; rows: number } {
  let rows = 0;
  for (let at = 0; at < text.length; ++rows) {
    const end = text.indexOf('\n', at);
    if (end < 0) {
      ++rows;
      break;
    }
    at = end + 1;
  }
  const lines: [number, string][] = [];
  const stride = Math.max(1, rows / mostRead);
  let wanted = 0;
  for (let at = 0, row = 0; at < text.length && row < rows; ++row) {
    const end = text.indexOf('\n', at);
    if (row >= wanted) {
      lines.push([row + 1, text.slice(at, end < 0 ? text.length : end).trim()]);
      wanted += stride;
    }
    at = end < 0 ? text.length : end + 1;
  }
  return { lines, rows };
}

/** Takes a table of x and y. A first line without a digit is its header; other lines without two numbers are left out. */
function takeTable(text: string): boolean {
  const { lines, rows } = someLines(text.replace(/^\uFEFF/, '').trimEnd());
  const good: Point[] = [];
  let bad: [number, string] | null = null;
  let count = 0;
  for (const [row, line] of lines) {
    if (!line || (row === 1 && !/\d/.test(line))) continue;
    const cells = line.split(/[,;\t ]+/);
    const [x, y] = cells.map((cell) => (cell === '' ? NaN : Number(cell)));
    if (cells.length >= 2 && Number.isFinite(x) && Number.isFinite(y)) good.push([x, y]);
    else if (++count) bad ??= [row, line.slice(0, 40)];
  }
  if (good.length < 2) {
    pasted.value = bad ? { key: 'pasteBadLine', values: { row: bad[0], line: bad[1] } } : { key: 'pasteBad' };
    return false;
  }
  const taken = good.length <= mostPoints ? good : Array.from({ length: mostPoints }, (_, i) => good[Math.floor((i * good.length) / mostPoints)]);
  pasted.value =
    taken.length < good.length || lines.length < rows
      ? { key: 'pasteSome', values: { used: taken.length, rows: rows.toLocaleString('en-US') } }
      : bad
        ? { key: 'pasteSkipped', values: { lines: count, rows: count + good.length, row: bad[0], line: bad[1] } }
        : null;
  s.points.value = taken;
  s.at.value = taken[Math.floor(taken.length / 2)][0];
  return true;
}
takeText('regression', async (file) => {
  if (file.size > 256 << 20) pasted.value = { key: 'fileTooLarge', values: { file: file.name } };
  else takeTable(await file.text());
});

function PasteBox() {
  const [open, setOpen] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const take = (text: string) => setOpen(!takeTable(text));
  return (
    <div class="paste">
      <button type="button" class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
        {t('pasteCsv')}
      </button>
      <button type="button" class="plain" disabled={!s.points.value} onClick={() => ((s.points.value = null), (pasted.value = null))}>
        {t('bookData')}
      </button>
      {open && (
        <div class="pastebox">
          <textarea
            ref={field}
            rows={6}
            placeholder={'x,y\n0.5,1.2\n1.0,2.3'}
            aria-label={t('pasteCsv')}
            onPaste={(event) => {
              // A field with a million lines would hold up the page: a long table is taken as it is pasted.
              const text = event.clipboardData?.getData('text/plain') ?? '';
              if (text.length < 100_000) return;
              event.preventDefault();
              take(text);
            }}
          />
          <button type="button" class="plain" onClick={() => take(field.current!.value)}>
            {t('use')}
          </button>
        </div>
      )}
      {pasted.value && <span role="alert">{t(pasted.value.key, pasted.value.values)}</span>}
    </div>
  );
}

function Maps({ data }: { data: Regress }) {
  if (!data.map) return null;
  const { rows, weights } = data.map;
  let lit = 0;
  rows.forEach((x, i) => {
    if (Math.abs(x - s.at.value) < Math.abs(rows[lit] - s.at.value)) lit = i;
  });
  const heat: HeatProps = {
    values: weights,
    rows: [],
    columns: [],
    scale: scaleOf(weights),
    label: t('regressMap'),
    litRow: lit,
    maxCell: 1000,
    tall: 240,
    rowName: t('queryRow'),
    columnName: t('keyColumn'),
    onPick: (row) => (s.at.value = Number(rows[row].toFixed(3))),
  };
  return (
    <Figure
      name="weights"
      title={t('regressMap')}
      svg={() => heatSvg(heat)}
      table={() => ({ header: ['query', ...points.value.map((p) => `key ${p[0]}`)], rows: weights.map((row, i) => [rows[i], ...row]) })}
      json={() => data.map}
      command={data.command}
    >
      <Heat {...heat} />
    </Figure>
  );
}

export function Regression() {
  const data = points.value.length > 1 ? answer.value.data : null;
  const h = data?.bandwidth ?? s.h.value;
  const truth = s.points.value && s.points.value.length !== bookPoints.length ? undefined : bookTruth;
  const move = (index: number, x: number, y: number) => {
    const next = points.peek().slice();
    next[index] = [x, y];
    s.points.value = next;
  };
  const text = (key: Key) => t(key);
  const own = s.points.value ? { points: s.points.value, at: s.at.value } : {}; // a thing to try keeps the data
  return (
    <BenchPage
      title={t('regressionTitle')}
      notice={rich('regressionNotice')}
      formula={data && <Formula data={data} />}
      tries={[
        tryThis('regression', 'tryNarrow', 'tryNarrowAsk', { ...own, h: 0.05 }),
        tryThis('regression', 'tryWide', 'tryWideAsk', { ...own, h: 8 }),
        tryThis('regression', 'tryChoose', 'tryChooseAsk', { ...own, choose: 'cv' }),
      ]}
    >
      <Figure
        name="regression"
        title={t('scatterTitle')}
        wide
        command={data?.command}
        table={() => ({ header: ['x', 'fit', 'low', 'high'], rows: (data?.grid ?? []).map((x, i) => [x, data!.fit[i] ?? '', data!.low?.[i] ?? '', data!.high?.[i] ?? '']) })}
        json={() => ({ points: points.value, answer: data })}
        note={[truth && t('scatterTruth'), t('scatterNote')].filter(Boolean).join(' ')}
      >
        <Scatter
          points={points.value}
          grid={data?.grid ?? []}
          fit={data?.fit ?? []}
          low={data?.low}
          high={data?.high}
          truth={truth}
          weights={data?.at?.weights}
          at={s.at.value}
          prediction={data?.at?.prediction ?? null}
          move={move}
          query={(x) => (s.at.value = x)}
          add={(x, y) => (s.points.value = [...points.peek(), [x, y]])}
          remove={(index) => (s.points.value = points.peek().filter((_, i) => i !== index))}
        />
        {points.value.length < 2 && <Empty>{t('fewPoints')}</Empty>}
        {answer.value.failure && points.value.length > 1 && !answer.value.busy && <Shown of={answer}>{() => null}</Shown>}
      </Figure>
      <div class="controls">
        <Choice label={t('kernel')} value={s.kernel.value} options={kernels.map((k) => ({ value: k as string, label: text(`kernel_${k}`) }))} set={(k) => (s.kernel.value = k)} />
        <Choice
          label={t('estimator')}
          value={s.fit.value}
          options={['average', 'constant', 'linear'].map((value) => ({ value, label: text(`fit_${value}` as Key) }))}
          set={(value) => (s.fit.value = value)}
        />
        <Slider
          label={t('width')}
          value={Math.max(0.03, Math.min(10, h))}
          low={0.03}
          high={10}
          log
          show={
            <>
              h = {num(h)}, w = 1/h = {num(1 / h)}, T = h² = {num(h * h)}
            </>
          }
          set={(value) => {
            s.choose.value = 'hand';
            s.h.value = value;
          }}
        />
        <Choice
          label={t('whoChooses')}
          value={byHand() ? 'hand' : s.choose.value}
          disabled={s.fit.value === 'average'}
          options={['hand', 'rule', 'cv'].map((value) => ({ value, label: text(`choose_${value}` as Key) }))}
          set={(value) => (s.choose.value = value)}
        />
        <div class="control">
          <span class="label">{t('learnedWidth')}</span>
          <button type="button" class="plain strong" disabled={learning.value} onClick={() => void train()}>
            {learning.value ? t('trainingNow') : t('trainFive')}
          </button>
        </div>
        <PasteBox />
      </div>
      {learned.value && (
        <p class="learned num" aria-live="polite">
          w: {learned.value.w.map((w) => num(w)).join(' → ')} · {t('loss')}: {learned.value.loss.map((l) => num(l)).join(' → ')}
        </p>
      )}
      {data && (
        <div class="pair wide-left">
          <Maps data={data} />
          <WidthCurve data={data} />
        </div>
      )}
    </BenchPage>
  );
}
