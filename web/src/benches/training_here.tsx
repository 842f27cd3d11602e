// Training in the page: the book's models, with the loss, the attention and the translations as they come.
import { batch, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Failure, post } from '../api';
import { hear, pause, putFiles, train } from '../engine';
import { loadModels } from '../models';
import { num } from '../num';
import { lang, settings } from '../store';
import { Choice, Empty, Failed, Select, Slider, Waiting } from '../ui';
import { Key, t } from '../words';
import { Curve, CurveProps, curveSvg } from '../views/curve';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';

const s = settings('training_here', { kind: 'd2l-transformer', seed: 1, rate: 0.005, heads: 4, positions: 'sinusoidal', epochs: 200 });

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
  });
  const transformer = s.kind.value === 'd2l-transformer';
  const wanted: Record<string, unknown> = { 'training.seed': s.seed.value, 'training.rate': s.rate.value, 'training.epochs': s.epochs.value };
  if (transformer) Object.assign(wanted, { 'model.heads': s.heads.value, 'model.positions': s.positions.value });
  try {
    started.value = await post<Started>('/train/start', { preset: s.kind.value, settings: wanted });
    state.value = 'running';
    await train(started.value.sentences, lang.peek());
  } catch (problem) {
    failure.value = problem as Failure;
    state.value = 'none';
  }
}
async function hold(paused: boolean) {
  state.value = paused ? 'paused' : 'running';
  await pause(paused);
}
/** The book's file, dropped on the page: its first lines are read instead of the built-in corpus. */
async function drop(file: File) {
  const text = await file.slice(0, 1 << 16).text();
  const lines = text.split('\n').slice(0, 601);
  const bad = lines.findIndex((line, i) => i < Math.min(lines.length - 1, 601) && line.split('\t').length < 2);
  if (bad >= 0) {
    failure.value = { status: 400, error: t('notPairs', { file: file.name, line: bad + 1 }) };
    return;
  }
  await putFiles([{ path: '/training/book.tsv', data: new TextEncoder().encode(lines.join('\n') + '\n') }]);
  dropped.value = file.name;
}

hear('train', (data: Advanced) =>
  batch(() => {
    if (state.peek() === 'none') return;
    now.value = data;
    losses.value = [...losses.peek(), ...data.losses];
    if (data.done) {
      state.value = 'done';
      void loadModels(); // it is a model for the other benches now
    }
  }),
);
hear('train_look', (data: Looked) => (seen.value = data));
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
    height: 260,
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

export function TrainingHere() {
  useEffect(() => {
    const stop = (event: DragEvent) => event.preventDefault();
    const take = (event: DragEvent) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) void drop(file);
    };
    addEventListener('dragover', stop);
    addEventListener('drop', take);
    return () => {
      removeEventListener('dragover', stop);
      removeEventListener('drop', take);
    };
  }, []);
  const begun = started.value;
  const last = now.value;
  const transformer = s.kind.value === 'd2l-transformer';
  return (
    <section class="card here" aria-label={t('trainHere')}>
      <header><h2>{t('trainHere')}</h2></header>
      <div class="controls top">
        <Select label={t('model')} value={s.kind.value} options={[{ value: 'd2l-transformer', label: t('bookTransformer') }, { value: 'd2l-bahdanau', label: t('bookBahdanau') }]} set={(value) => (s.kind.value = value)} />
        <Slider label={t('seed')} value={s.seed.value} low={1} high={20} step={1} show={String(s.seed.value)} set={(n) => (s.seed.value = n)} />
        <Slider label={t('fact_rate')} value={s.rate.value} low={0.0001} high={0.05} log set={(n) => (s.rate.value = n)} />
        {transformer && <Choice label={t('whichHeads')} value={s.heads.value} options={[1, 2, 4, 8]} set={(n) => (s.heads.value = n)} />}
        {transformer && <Select label={t('encoding')} value={s.positions.value} options={['sinusoidal', 'none', 'learned', 'rotary', 'relative', 'alibi'].map((value) => ({ value, label: t(`positions_${value}` as Key) }))} set={(value) => (s.positions.value = value)} />}
        <button type="button" class="primary" disabled={state.value === 'starting'} onClick={() => void begin()}>{t(state.value === 'none' ? 'startTraining' : 'startAnew')}</button>
        {(state.value === 'running' || state.value === 'paused') && <button type="button" onClick={() => void hold(state.value === 'running')}>{t(state.value === 'running' ? 'pauseTraining' : 'resumeTraining')}</button>}
        {state.value === 'done' && begun && <span class="soft">{t('keptModel', { name: begun.name })}</span>}
      </div>
      <p class="soft">{dropped.value ? t('dataDropped', { file: dropped.value }) : t('dataHere')}</p>
      {failure.value && <Failed failure={failure.value} />}
      {state.value === 'starting' && <Waiting height={80} />}
      {begun && (
        <>
          <div class="live" data-state={state.value}>
            <progress max={begun.steps} value={last?.step ?? 0} aria-label={t('progress')} />{' '}
            <span class="num">{t('trainingLine', { epoch: last?.epoch ?? 0, epochs: begun.epochs, loss: last ? num(losses.value.length ? losses.value[losses.value.length - 1] : last.loss, 4) : '', speed: Math.round(last?.per_second ?? 0) })}</span>
          </div>
          <div class="pair">
            <Loss of={begun} />
            {seen.value ? <Attention of={seen.value} /> : <Waiting height={260} />}
          </div>
          {seen.value && (
            <ul class="translations">
              {seen.value.sentences.map((one, i) => (
                <li>
                  <button type="button" class="link" aria-pressed={shown.value === i} onClick={() => (shown.value = i)}>{one.text}</button> → <b>{one.translation}</b>{' '}
                  <span class="soft">{one.translation === begun.sentences[i]?.reference ? '✓' : begun.sentences[i]?.reference}</span>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </section>
  );
}
