// Scores and masks: attention step by step on matrices small enough to write by hand.
import { batch, computed, signal } from '@preact/signals';
import { follow } from '../api';
import { csvOf, save } from '../export';
import { num } from '../num';
import { isMatrix, isObject, settings } from '../store';
import { BenchPage, Check, Choice, Select, Shown, Slider, TextField, tryThis, useWidth } from '../ui';
import { Key, rich, t } from '../words';
import { Bars } from '../views/bars';
import { scaleOf } from '../views/colours';
import { Figure } from '../views/figure';
import { EditMatrix, Entry, Place, Step, Steps, value } from '../views/matrix';
import { Made } from './scores_made';

type Matrix = number[][];
export const book = {
  q: [[1, 0], [0, 1], [1, 1], [-1, 0.5]],
  k: [[1, 0], [0, 1], [1, 1], [-1, 0]],
  v: [[1, 0], [0, 1], [2, 2], [-1, 3]],
};
const isSmall = (value: unknown) => isMatrix(value) && value.length <= 12 && value[0].length <= 12;
const s = settings('scores', {
  q: null as Matrix | null,
  k: null as Matrix | null,
  v: null as Matrix | null,
  params: null as Record<string, Matrix> | null,
  score: 'scaled-dot',
  bandwidth: 1,
  temperature: 1,
  lens: '',
  causal: false,
  window: -1,
  step: 'weights',
  row: 0,
  column: 0,
}, { q: isSmall, k: isSmall, v: isSmall, params: (value) => isObject(value) && Object.values(value).every((one) => isMatrix(one)) });
const scorers = [
  'scaled-dot', 'dot', 'cosine', 'bilinear', 'additive', 'negative-squared-distance', 'gaussian', 'boxcar', 'triangular', 'epanechnikov', 'vector-sum', 'salience', 'constant',
] as const;
const kernels = ['gaussian', 'boxcar', 'triangular', 'epanechnikov'];

const q = computed<Matrix>(() => s.q.value ?? book.q);
const k = computed<Matrix>(() => s.k.value ?? book.k);
const v = computed<Matrix>(() => s.v.value ?? book.v);

/** The learned tensors of a scorer, as large as these queries and keys want them; those given are kept where they fit. */
const eye = (rows: number, columns: number) => Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => (i === j ? 1 : 0)));
const params = computed<Record<string, Matrix>>(() => {
  const [dq, dk] = [q.value[0].length, k.value[0].length];
  const ones = (n: number) => [new Array<number>(n).fill(1)];
  const wanted: Record<string, Record<string, Matrix>> = {
    bilinear: { W: eye(dq, dk) },
    additive: { W_q: eye(2, dq), W_k: eye(2, dk), w_v: ones(2) },
    'vector-sum': { w: ones(dk) },
    salience: { w: ones(dk) },
  };
  const own = wanted[s.score.value] ?? {};
  return Object.fromEntries(
    Object.entries(own).map(([name, usual]) => {
      const given = s.params.value?.[name];
      const fits = given && given.length === usual.length && given[0].length === usual[0].length;
      return [name, fits ? given : usual];
    }),
  );
});
const flat = ['w', 'w_v'];

/** Lengths as they are written: one for all queries, or one per query. */
const lens = computed(() => s.lens.value.split(/[,; ]+/).filter(Boolean).map(Number));
const lensBad = computed(() => {
  const bad = lens.value.some((n) => !Number.isInteger(n) || n < 0);
  return bad || (lens.value.length > 1 && lens.value.length !== q.value.length);
});

export interface Attended {
  score: string;
  formula: string;
  steps: { name: string; values: Entry[][]; formula: string }[];
  empty_rows: number[];
  entropy: number[];
  book_weights: Entry[][];
  command?: string;
}
const answer = follow<Attended>(() => ({
  path: '/attend',
  body: {
    score: s.score.value,
    q: q.value,
    k: k.value,
    v: v.value,
    ...(Object.keys(params.value).length
      ? { params: Object.fromEntries(Object.entries(params.value).map(([name, m]) => [name, flat.includes(name) ? m[0] : m])) }
      : {}),
    ...(kernels.includes(s.score.value) ? { bandwidth: s.bandwidth.value } : {}),
    ...(s.temperature.value !== 1 ? { temperature: s.temperature.value } : {}),
    ...(lens.value.length && !lensBad.value ? { lens: lens.value } : {}),
    ...(s.causal.value ? { causal: true } : {}),
    ...(s.window.value >= 0 ? { window: [s.window.value, s.window.value] } : {}),
  },
}));

const pointed = signal<Place | null>(null);
const picked = computed<Place>(() => ({ step: s.step.value, row: s.row.value, column: s.column.value }));
/** The cell that is looked at: under the pointer, or else the one picked, kept inside its matrix. */
function looked(data: Attended): Place {
  const place = pointed.value ?? picked.value;
  const m = (data.steps.find((one) => one.name === place.step) ?? data.steps[3]).values;
  return { step: place.step, row: Math.min(place.row, m.length - 1), column: Math.min(place.column, m[0].length - 1) };
}
const before: Record<string, string> = { scaled: 'scores', masked: 'scaled', weights: 'masked', output: 'weights' };
const made = (at: Place) => (place: Place) => {
  if (place.step !== before[at.step] || place.row !== at.row) return false;
  return at.step === 'weights' || at.step === 'output' || place.column === at.column;
};

const stepTitle = (name: string) => t(name === 'scores' && s.score.value !== 'scaled-dot' && s.score.value !== 'dot' ? 'step_scores_other' : (`step_${name}` as Key));
const stepsOf = (data: Attended): Step[] =>
  data.steps.map((one) => ({
    name: one.name,
    title: stepTitle(one.name),
    values: one.values,
    scale: one.name === 'weights' ? { low: 0, high: 1 } : scaleOf(one.values.map((row) => row.map(value)), 'signed'),
  }));

function Picture({ data }: { data: Attended }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const at = looked(data);
  const rows = data.steps.flatMap((one) => one.values.map((row, i) => [one.name, i, ...row.map(value)]));
  return (
    <Figure name="steps" title={t('stepsTitle')} wide table={() => ({ header: ['step', 'row', 'columns'], rows })} json={() => data} command={data.command} note={t('stepsNote')}>
      <div ref={box}>
        {width > 0 && (
          <Steps
            steps={stepsOf(data)}
            at={at}
            made={made(at)}
            width={width}
            label={t('stepsTitle')}
            point={(place) => (pointed.value = place)}
            pick={(place) => {
              s.step.value = place.step;
              s.row.value = place.row;
              s.column.value = place.column;
            }}
          />
        )}
      </div>
    </Figure>
  );
}

/** What the book does instead of hiding: -1e6 in place of the score. It shows where a query sees no key at all. */
function Book({ data }: { data: Attended }) {
  const row = data.empty_rows[0];
  if (row === undefined) {
    return (
      <section class="card" data-figure="book">
        <header>
          <h2>{t('bookTitle')}</h2>
        </header>
        <p class="aside">{rich('bookNone')}</p>
        <button type="button" class="plain" onClick={() => (s.lens.value = q.value.map((_, i) => (i === 0 ? 0 : k.value.length)).join(', '))}>
          {t('bookMake')}
        </button>
      </section>
    );
  }
  const ours = data.steps.find((one) => one.name === 'weights')!.values[row].map(value);
  const theirs = data.book_weights[row].map(value);
  const bars = (values: number[]) => values.map((x, j) => ({ label: t('keyN', { n: j + 1 }), value: x }));
  return (
    <Figure name="book" title={t('bookTitle')} noPicture table={() => ({ header: ['key', 'hidden', '-1e6'], rows: ours.map((x, j) => [j + 1, x, theirs[j]]) })} json={() => ({ row, ours, theirs })} note={rich('bookNote', { row: row + 1 })}>
      <div class="pair">
        <div>
          <p class="soft">{t('bookOurs')}</p>
          <Bars label={t('bookOurs')} high={1} bars={bars(ours)} />
        </div>
        <div>
          <p class="soft">{t('bookTheirs')}</p>
          <Bars label={t('bookTheirs')} high={1} bars={bars(theirs)} />
        </div>
      </div>
    </Figure>
  );
}

const fill = (m: Matrix, rows: number, columns: number): Matrix => Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => m[i]?.[j] ?? (i === j ? 1 : 0)));

/** Sizes that belong together change together: the widths of q and K, the numbers of keys and of values. */
const setQ = (m: Matrix) =>
  batch(() => {
    s.q.value = m;
    if (m[0].length !== k.peek()[0].length) s.k.value = fill(k.peek(), k.peek().length, m[0].length);
  });
const setK = (m: Matrix) =>
  batch(() => {
    s.k.value = m;
    if (m.length !== v.peek().length) s.v.value = fill(v.peek(), m.length, v.peek()[0].length);
    if (m[0].length !== q.peek()[0].length) s.q.value = fill(q.peek(), q.peek().length, m[0].length);
  });
const setV = (m: Matrix) =>
  batch(() => {
    s.v.value = m;
    if (m.length !== k.peek().length) s.k.value = fill(k.peek(), m.length, k.peek()[0].length);
  });
const setFirst = () => batch(() => [s.q, s.k, s.v, s.params].forEach((one) => (one.value = null)));

function Count(props: { label: string; value: number; set: (n: number) => void }) {
  return (
    <div class="control">
      <span class="label">{props.label}</span>
      <div class="count" role="group" aria-label={props.label}>
        <button type="button" aria-label={t('fewer', { what: props.label })} disabled={props.value <= 1} onClick={() => props.set(props.value - 1)}>
          −
        </button>
        <output>{props.value}</output>
        <button type="button" aria-label={t('more', { what: props.label })} disabled={props.value >= 8} onClick={() => props.set(props.value + 1)}>
          +
        </button>
      </div>
    </div>
  );
}

function Inputs({ data }: { data: Attended | null }) {
  const at = data ? looked(data) : picked.value;
  const scoring = ['scores', 'scaled', 'masked'].includes(at.step);
  const saveAll = () => {
    for (const [name, m] of [['q', q.value], ['k', k.value], ['v', v.value]] as const) {
      save(`${name}.csv`, csvOf({ header: m[0].map(String), rows: m.slice(1) }), 'text/csv');
    }
  };
  return (
    <section class="card" aria-label={t('inputsTitle')} data-figure="inputs">
      <header>
        <h2>{t('inputsTitle')}</h2>
        <div class="export">
          <button type="button" onClick={saveAll} title={t('saveInputs')}>
            q.csv, k.csv, v.csv
          </button>
        </div>
      </header>
      <div class="editors">
        <EditMatrix name="Q" values={q.value} set={setQ} lit={(i) => scoring && i === at.row} />
        <EditMatrix name="K" values={k.value} set={setK} lit={(i) => scoring && i === at.column} />
        <EditMatrix name="V" values={v.value} set={setV} lit={(_, j) => at.step === 'output' && j === at.column} />
        {Object.entries(params.value).map(([name, m]) => (
          <EditMatrix name={name} values={m} set={(next) => (s.params.value = { ...s.params.peek(), [name]: next })} lit={() => at.step === 'scores'} />
        ))}
      </div>
      <p class="note">{t('inputsNote')}</p>
      <div class="controls sizes">
        <Count label={t('queries')} value={q.value.length} set={(n) => setQ(fill(q.value, n, q.value[0].length))} />
        <Count label={t('keysCount')} value={k.value.length} set={(n) => setK(fill(k.value, n, k.value[0].length))} />
        <Count label={t('widthD')} value={q.value[0].length} set={(n) => setQ(fill(q.value, q.value.length, n))} />
        <Count label={t('valueWidth')} value={v.value[0].length} set={(n) => setV(fill(v.value, v.value.length, n))} />
        <button type="button" class="plain" disabled={!s.q.value && !s.k.value && !s.v.value} onClick={setFirst}>
          {t('firstNumbers')}
        </button>
      </div>
    </section>
  );
}

export function Scores() {
  const { data } = answer.value;
  return (
    <BenchPage
      title={t('scoresTitle')}
      notice={rich('scoresNotice')}
      formula={data && <Made data={data} at={looked(data)} q={q.value} k={k.value} v={v.value} />}
      tries={[
        tryThis('scores', 'tryEmptyRow', 'tryEmptyRowAsk', { lens: '0, 2, 3, 4', step: 'weights', row: 0, column: 0 }),
        tryThis('scores', 'tryCausal', 'tryCausalAsk', { causal: true, step: 'masked', row: 1, column: 2 }),
        tryThis('scores', 'trySharp', 'trySharpAsk', { temperature: 0.1, step: 'output', row: 2, column: 1 }),
      ]}
    >
      <div class="beside">
        <Inputs data={data} />
        <section class="card" aria-label={t('rulesTitle')}>
          <header>
            <h2>{t('rulesTitle')}</h2>
          </header>
          <div class="controls">
            <Select label={t('scorer')} value={s.score.value} options={scorers.map((value) => ({ value: value as string, label: value }))} set={(value) => (s.score.value = value)} />
            <Slider label={t('temperature')} value={s.temperature.value} low={0.05} high={20} log set={(value) => (s.temperature.value = value)} />
            {kernels.includes(s.score.value) && <Slider label={t('width')} value={s.bandwidth.value} low={0.1} high={10} log set={(value) => (s.bandwidth.value = value)} />}
            <TextField label={t('lengths')} value={s.lens.value} placeholder={t('lengthsPlaceholder', { most: k.value.length })} set={(value) => (s.lens.value = value)} />
            <Choice label={t('windowOf')} value={s.window.value} options={[{ value: -1, label: t('windowAll') }, ...[0, 1, 2].map((n) => ({ value: n, label: `±${n}` }))]} set={(n) => (s.window.value = n)} />
            <Check label={t('causal')} value={s.causal.value} set={(on) => (s.causal.value = on)} />
          </div>
          {lensBad.value && (
            <p class="second" role="alert">
              {t('lensBad', { queries: q.value.length })}
            </p>
          )}
        </section>
      </div>
      <Shown of={answer} height={300}>
        {(done) => (
          <>
            <Picture data={done} />
            <div class="pair">
              <Book data={done} />
              <Figure name="entropy" title={t('entropyTitle')} noPicture table={() => ({ header: ['query', 'entropy'], rows: done.entropy.map((x, i) => [i + 1, x]) })} json={() => done.entropy} note={t('entropyNote', { most: num(Math.log(k.value.length)) })}>
                <Bars label={t('entropyTitle')} high={Math.log(Math.max(2, k.value.length))} bars={done.entropy.map((x, i) => ({ label: t('queryN', { n: i + 1 }), value: x ?? 0, on: looked(done).row === i }))} />
              </Figure>
            </div>
          </>
        )}
      </Shown>
    </BenchPage>
  );
}
