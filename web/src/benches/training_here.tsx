// Training in the page: the book's models, with the loss, the attention and the translations as they come.
import { batch, signal } from '@preact/signals';
import { Failure, post } from '../api';
import { takeText, tell } from '../bring';
import { hear, pause, putFiles, train } from '../engine';
import { loadModels } from '../models';
import { num } from '../num';
import { bench, lang, preset } from '../store';
import { epochs, kind, rate, s } from './training_settings';
import { Choice, Empty, Failed, Select, Slider, Waiting } from '../ui';
import { Key, rich, t } from '../words';
import { LearnedWidth } from './training_width';
import { Curve, CurveProps, curveSvg } from '../views/curve';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';

interface Started {
  name: string;
  pairs: number;
  parameters: number;
  steps: number;
  epochs: number;
  loss_unit: 'book' | 'token';
  heads: number;
  sentences: { text: string; reference: string }[];
}
interface Advanced {
  step: number;
  steps: number;
  epoch: number;
  losses: number[];
  loss: number;
  per_second: number;
  done: boolean;
}
interface Looked {
  epoch: number;
  sentences: { text: string; translation: string; source_tokens: string[]; output_tokens: string[]; maps: number[][][] }[];
}
const started = signal<Started | null>(null);
const losses = signal<number[]>([]);
const now = signal<Advanced | null>(null);
const seen = signal<Looked | null>(null);
const state = signal<'none' | 'starting' | 'running' | 'paused' | 'done'>('none');
const failure = signal<Failure | null>(null);
const shown = signal(0); // which sentence's attention
const map = signal(0);
const dropped = signal('');

async function begin() {
  batch(() => {
    state.value = 'starting';
    failure.value = null;
    losses.value = [];
    now.value = seen.value = started.value = null;
    shown.value = map.value = 0;
  });
  const wanted: Record<string, unknown> = { 'training.seed': s.seed.value, 'training.rate': rate.value, 'training.epochs': epochs.value };
  if (kind.value === 'd2l-transformer') Object.assign(wanted, { 'model.heads': s.heads.value, 'model.positions': s.positions.value });
  try {
    await pause(true); // of the training before
    started.value = await post<Started>('/train/start', { preset: kind.value, settings: wanted });
    state.value = 'running';
    await train(started.value.sentences, lang.peek());
  } catch (problem) {
    batch(() => {
      failure.value = (problem as Failure).error ? (problem as Failure) : { status: 500, error: 'engine' };
      state.value = 'none';
    });
  }
}
async function hold(paused: boolean) {
  state.value = paused ? 'paused' : 'running';
  await pause(paused);
}
/** The book's file, dropped on the page: its first lines are read instead of the built-in corpus. */
takeText('training', async (file) => {
  const text = await file.slice(0, 1 << 17).text();
  const lines = text.split(/\r?\n/).slice(0, 601);
  const bad = lines.findIndex((line, i) => line.split('\t').length < 2 && (i < lines.length - 1 || line !== ''));
  const last = lines.length < 601 && file.size > 1 << 17; // cut in the middle of a line
  if (last) lines.pop();
  if (bad >= 0 && bad < lines.length) return tell({ key: 'notPairs', values: { file: file.name, line: bad + 1 } });
  await putFiles([{ path: '/training/book.tsv', data: new TextEncoder().encode(lines.filter(Boolean).join('\n') + '\n') }]);
  dropped.value = file.name;
  tell({ key: 'dataDropped', values: { file: file.name, lines: lines.filter(Boolean).length }, good: true });
});

hear('train', (data: Advanced) =>
  batch(() => {
    if (state.peek() !== 'running' && state.peek() !== 'paused') return; // of the training before
    now.value = data;
    losses.value = [...losses.peek().slice(0, data.epoch - data.losses.length), ...data.losses];
    if (data.done) {
      state.value = 'done';
      void loadModels(); // it is a model for the other benches now
    }
  }),
);
hear('train_look', (data: Looked) => (state.peek() === 'starting' ? undefined : (seen.value = data)));
hear('train_failed', (data: Failure) =>
  batch(() => {
    failure.value = data;
    state.value = 'none';
  }),
);

function Loss({ of }: { of: Started }) {
  const curve: CurveProps = {
    x: losses.value.map((_, i) => i + 1),
    series: [{ label: t('loss'), values: losses.value, colour: 'accent' }],
    xLabel: t('fact_epoch'),
    height: 300,
    logY: true,
    label: t(of.loss_unit === 'book' ? 'lossBook' : 'lossToken'),
  };
  return (
    <Figure name="loss" title={curve.label} svg={() => curveSvg(curve)} table={() => ({ header: [t('fact_epoch'), t('loss')], rows: losses.value.map((loss, i) => [i + 1, loss]) })} json={() => losses.value}>
      {losses.value.length > 1 ? <Curve {...curve} /> : <Waiting height={260} />}
    </Figure>
  );
}

function Attention({ of }: { of: Looked }) {
  const one = of.sentences[Math.min(shown.value, of.sentences.length - 1)];
  const values = one.maps[Math.min(map.value, one.maps.length - 1)];
  if (!values?.length) return <Empty><p>{t('noMap')}</p></Empty>;
  const heat: HeatProps = { values, rows: one.output_tokens.slice(0, values.length), columns: one.source_tokens, scale: { low: 0, high: 1 }, label: t('mapOfSentence', { text: one.text }), maxCell: 34, rowName: t('written'), columnName: t('read') };
  return (
    <Figure name="attention" title={heat.label} svg={() => heatSvg(heat)} table={() => ({ header: ['', ...heat.columns], rows: values.map((row, i) => [heat.rows[i], ...row]) })} json={() => one}>
      <Slider label={t('whichMap')} value={map.value + 1} low={1} high={Math.max(2, one.maps.length)} step={1} show={String(map.value + 1)} set={(n) => (map.value = n - 1)} disabled={one.maps.length < 2} />
      <Heat {...heat} />
    </Figure>
  );
}

/** Opens another bench with the model that was trained here. */
function KeptIn({ name }: { name: string }) {
  const open = (where: string) => {
    preset(where, { model: name });
    bench.value = where;
  };
  const benches = kind.value === 'd2l-transformer' ? (['translate', 'heads', 'transformer'] as const) : (['translate'] as const);
  return (
    <p class="soft">
      {t('keptModel', { name })}{' '}
      {benches.map((where) => (
        <button type="button" class="plain" onClick={() => open(where)}>
          {t(`bench_${where}`)}
        </button>
      ))}
    </p>
  );
}

function Words({ of, seen: looked }: { of: Started; seen: Looked }) {
  return (
    <section class="card" aria-label={t('writesNow', { epoch: looked.epoch })} data-figure="translations">
      <header>
        <h2>{t('writesNow', { epoch: looked.epoch })}</h2>
      </header>
      <ul class="translations">
        {looked.sentences.map((one, i) => {
          const wanted = of.sentences[i]?.reference;
          const right = one.translation === wanted;
          return (
            <li class={right ? 'right' : ''}>
              <button type="button" class="link" aria-pressed={shown.value === i} onClick={() => (shown.value = i)}>
                {one.text}
              </button>{' '}
              → <b>{one.translation || t('nothingYet')}</b> <span class={right ? 'tick' : 'soft'} title={right ? t('isRight') : undefined}>{right ? '✓' : t('shouldBe', { text: wanted ?? '' })}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** A running training of the book's models. */
function Sequence() {
  const begun = started.value;
  const last = now.value;
  const loss = losses.value.length ? losses.value[losses.value.length - 1] : last?.loss;
  return (
    <>
      {failure.value && <Failed failure={failure.value} />}
      {state.value === 'starting' && <Waiting height={80} />}
      {state.value === 'none' && !failure.value && <Empty><p>{rich('notStarted')}</p></Empty>}
      {begun && (
        <>
          <div class="live" data-state={state.value}>
            <progress max={begun.steps} value={last?.step ?? 0} aria-label={t('progress')} />{' '}
            <span class="num">{t('trainingLine', { epoch: last?.epoch ?? 0, epochs: begun.epochs, loss: loss === undefined ? '–' : num(loss, 3), speed: Math.round(last?.per_second ?? 0) })}</span>
          </div>
          {state.value === 'done' && <KeptIn name={begun.name} />}
          <div class="pair">
            <Loss of={begun} />
            <div class="stack">
              {seen.value && <Words of={begun} seen={seen.value} />}
              {seen.value ? <Attention of={seen.value} /> : <Waiting height={260} line={t('firstLook')} />}
            </div>
          </div>
        </>
      )}
    </>
  );
}

const kinds = [
  { value: 'nadaraya-watson', label: 'bookWidth' },
  { value: 'd2l-bahdanau', label: 'bookBahdanau' },
  { value: 'd2l-transformer', label: 'bookTransformer' },
] as const;

export function TrainingHere() {
  const width = kind.value === 'nadaraya-watson';
  const busy = state.value === 'running' || state.value === 'paused';
  return (
    <>
      <section class="controls top" aria-label={t('trainHere')}>
        <Select label={t('whatToTrain')} value={kind.value} options={kinds.map(({ value, label }) => ({ value: value as string, label: t(label) }))} set={(value) => batch(() => { s.kind.value = value; s.rate.value = s.epochs.value = 0; })} />
        <Slider label={t('seed')} value={s.seed.value} low={0} high={20} step={1} show={String(s.seed.value)} set={(n) => (s.seed.value = n)} />
        <Slider label={t('fact_rate')} value={rate.value} low={width ? 0.01 : 0.0001} high={width ? 50 : 0.05} log set={(n) => (s.rate.value = n)} />
        <Slider label={t('epochsToTrain')} value={epochs.value} low={1} high={width ? 50 : 400} step={1} show={String(epochs.value)} set={(n) => (s.epochs.value = n)} />
        {kind.value === 'd2l-transformer' && <Choice label={t('headCount')} value={s.heads.value} options={[1, 2, 4, 8]} set={(n) => (s.heads.value = n)} />}
        {kind.value === 'd2l-transformer' && <Select label={t('encoding')} value={s.positions.value} options={['sinusoidal', 'none', 'learned', 'rotary', 'relative', 'alibi'].map((value) => ({ value, label: t(`positions_${value}` as Key) }))} set={(value) => (s.positions.value = value)} />}
        {!width && (
          <>
            <button type="button" class="plain strong" disabled={state.value === 'starting'} onClick={() => void begin()}>
              {t(state.value === 'none' ? 'startTraining' : 'startAnew')}
            </button>
            {busy && (
              <button type="button" class="plain" onClick={() => void hold(state.value === 'running')}>
                {t(state.value === 'running' ? 'pauseTraining' : 'resumeTraining')}
              </button>
            )}
          </>
        )}
      </section>
      {!width && <p class="soft">{dropped.value ? t('dataFrom', { file: dropped.value }) : t('dataHere')}</p>}
      {width ? <LearnedWidth /> : <Sequence />}
    </>
  );
}
