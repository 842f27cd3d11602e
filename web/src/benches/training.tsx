// Training: a run's losses as they come, what its pinned sentence attended to at every saved step, two runs side by side.
import { computed, effect, signal } from '@preact/signals';
import { Failure, get } from '../api';
import { isNamed, latest, metrics, Model, models, training as progress } from '../models';
import { num } from '../num';
import { bench } from '../store';
import { BackgroundFailed, BenchPage, Choice, Empty, Failed, RunState, Select, Slider, tryThis, Waiting } from '../ui';
import { Key, rich, t } from '../words';
import { Curve, CurveProps, curveSvg } from '../views/curve';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { hasEngine } from '../engine';
import { TrainingHere } from './training_here';
import { s } from './training_settings';


type Row = Record<string, number | string>;
interface Metrics {
  rows: Row[];
  left_out: number;
  attention: { epoch: number; map: number[][] }[];
  command: string;
}
const known = signal<Record<string, Metrics>>({});
const failure = signal<Failure | null>(null);
const run = computed(() => models.value?.find((one) => isNamed(one, s.run.value)) ?? latest(models.value ?? []));
// Where nothing is chosen, the run that is being trained; it stays when its training has ended.
effect(() => {
  const live = models.value?.find((one) => one.state === 'training');
  if (bench.value === 'training' && live && !s.run.value) s.run.value = live.name;
});
const other = computed(() => models.value?.find((one) => isNamed(one, s.other.value)) ?? null);

async function load(id: string) {
  try {
    const rows = await get<Metrics>(`/runs/${id}/metrics`);
    known.value = { ...known.peek(), [id]: rows }; // another run may have come meanwhile
    failure.value = null;
  } catch (problem) {
    failure.value = problem as Failure;
  }
}
// A run that is being trained reports every line and every saved map; its curve grows with them. One line is several
// events, and one question.
const due = new Map<string, number>();
const soon = (id: string) => {
  if (due.has(id)) return;
  due.set(id, window.setTimeout(() => (due.delete(id), void load(id)), id in known.peek() ? 400 : 0));
};
effect(() => {
  if (bench.value !== 'training') return; // a bench that is not shown asks nothing
  if (run.value) soon(run.value.id);
  if (other.value) soon(other.value.id);
  if (metrics.value && metrics.value.id in known.peek()) soon(metrics.value.id);
});

const shows: Record<string, string[]> = { loss: ['loss', 'valid_loss'], accuracy: ['valid_accuracy'], rate: ['rate'], speed: ['per_second'] };
const show = computed(() => (Object.hasOwn(shows, s.show.value) ? s.show.value : 'loss'));
const place = (row: Row) => Number(row.step ?? row.epoch ?? 0);

function curveOf(parts: { model: Model; data: Metrics }[]): CurveProps | null {
  const fields = shows[show.value];
  const steps = [...new Set(parts.flatMap(({ data }) => data.rows.filter((row) => fields.some((f) => typeof row[f] === 'number')).map(place)))].sort((a, b) => a - b);
  const series = parts.flatMap(({ model, data }, which) =>
    fields
      .filter((field) => data.rows.some((row) => typeof row[field] === 'number'))
      .map((field, i) => {
        const at = new Map(data.rows.filter((row) => typeof row[field] === 'number').map((row) => [place(row), Number(row[field])]));
        return { label: parts.length > 1 ? `${model.name}: ${t(`metric_${field}` as Key)}` : t(`metric_${field}` as Key), values: steps.map((x) => at.get(x) ?? null), colour: which || (i > 0 && parts.length === 1) ? ('second' as const) : ('accent' as const), dashed: i > 0 };
      }),
  );
  return series.length ? { x: steps, series, xLabel: t('stepAxis'), height: 320, logY: show.value === 'rate', label: t(`show_${show.value}` as Key), marker: undefined } : null;
}

function Scrubber({ data }: { data: Metrics }) {
  const last = data.attention.length - 1;
  if (last < 0) return <Empty><p>{rich('noMaps')}</p></Empty>;
  const at = s.step.value < 0 ? last : Math.min(s.step.value, last);
  const now = data.attention[at];
  const heat: HeatProps = { values: now.map, rows: now.map.map((_, i) => String(i + 1)), columns: now.map[0].map((_, j) => String(j + 1)), scale: { low: 0, high: 1 }, label: t('mapAt', { epoch: now.epoch }), maxCell: 34, rowName: t('written'), columnName: t('read') };
  return (
    <Figure name="attention" title={heat.label} svg={() => heatSvg(heat)} table={() => ({ header: ['', ...now.map[0].map((_, i) => String(i))], rows: now.map.map((row, i) => [i, ...row]) })} json={() => now} note={t('pinnedNote')}>
      <Slider label={t('scrub')} value={at} low={0} high={Math.max(1, last)} step={1} show={String(now.epoch)} set={(n) => (s.step.value = n)} />
      <Heat {...heat} />
    </Figure>
  );
}

const facts = new Set(['epoch', 'step', 'loss', 'rate', 'gradient_norm', 'count', 'seconds', 'per_second', 'valid_loss', 'valid_accuracy']);
function Picture({ model, data }: { model: Model; data: Metrics }) {
  const second = other.value && other.value.id !== model.id ? known.value[other.value.id] : null;
  const curve = curveOf([{ model, data }, ...(second ? [{ model: other.value!, data: second }] : [])]);
  const last = data.rows[data.rows.length - 1];
  return (
    <>
      {curve ? (
        <Figure
          name="metrics"
          title={curve.label}
          wide
          svg={() => curveSvg(curve)}
          table={() => ({ header: [t('stepAxis'), ...curve.series.map((one) => one.label)], rows: curve.x.map((x, i) => [x, ...curve.series.map((one) => one.values[i] ?? '')]) })}
          json={() => data.rows}
          command={[data.command, ...shows[show.value].filter((y) => data.rows.some((row) => typeof row[y] === 'number')).map((y) => `--y ${y}`)].join(' ')}
          note={data.left_out ? t('leftOut', { count: data.left_out }) : undefined}
        >
          <Curve {...curve} />
        </Figure>
      ) : (
        <Empty>{t('noSuchMetric')}</Empty>
      )}
      <div class="pair">
      <Scrubber data={data} />
      {last && (
        <section class="card" aria-label={t('lastLine')}>
        <header><h2>{t('lastLine')}</h2></header>
        <ul class="facts num">
          {Object.entries(last)
            .filter(([, value]) => typeof value === 'number')
            .map(([key, value]) => (
              <li>
                <span class="soft" title={key}>
                  {facts.has(key) ? t(`fact_${key}` as Key) : key}
                </span> {Number.isInteger(value) ? String(value) : num(value as number, 4)}
              </li>
            ))}
        </ul>
        </section>
      )}
      </div>
    </>
  );
}

export function TrainingBench() {
  return hasEngine ? <TrainingInPage /> : <TrainingRuns />;
}

function TrainingInPage() {
  return (
    <BenchPage
      title={t('trainingTitle')}
      notice={rich('trainingHereNotice')}
      tries={[
        tryThis('training', 'tryPlaceless', 'tryPlacelessAsk', { positions: 'none' }),
        tryThis('training', 'tryFast', 'tryFastAsk', { rate: 0.03 }),
        tryThis('training', 'tryWidth', 'tryWidthAsk', { kind: 'nadaraya-watson' }),
      ]}
    >
      <TrainingHere />
    </BenchPage>
  );
}

function TrainingRuns() {
  const all = models.value;
  const model = run.value;
  const data = model ? known.value[model.id] : null;
  const live = model?.state === 'training' ? (progress.value[model.id]?.done ?? model.done ?? 0) : null;
  return (
    <BenchPage
      title={t('trainingTitle')}
      notice={rich('trainingNotice')}
      tries={[
        tryThis('training', 'tryRate', 'tryRateAsk', { show: 'rate', run: s.run.value }),
        tryThis('training', 'trySpeed', 'trySpeedAsk', { show: 'speed', run: s.run.value }),
        tryThis('training', 'tryEarly', 'tryEarlyAsk', { step: 0, run: s.run.value }),
      ]}
    >
      <BackgroundFailed />
      {all === null ? (
        <Waiting height={360} />
      ) : !model ? (
        <Empty><p>{rich('noRuns')}</p></Empty>
      ) : (
        <>
          <div class="controls top">
            <Select label={t('run')} value={model.id} options={all.map((one) => ({ value: one.id, label: one.name }))} set={(id) => (s.run.value = all.find((one) => one.id === id)?.name ?? id)} />
            <Select label={t('beside')} value={other.value?.id ?? ''} options={[{ value: '', label: t('nothing') }, ...all.filter((one) => one.id !== model.id).map((one) => ({ value: one.id, label: one.name }))]} set={(id) => (s.other.value = all.find((one) => one.id === id)?.name ?? '')} />
            <Choice label={t('curveOf')} value={show.value} options={Object.keys(shows).map((value) => ({ value, label: t(`show_${value}` as Key) }))} set={(value) => (s.show.value = value)} />
          </div>
          {live !== null && (
            <div class="live">
              <progress max={1} value={live} aria-label={t('progress')} /> <span class="num">{progress.value[model.id]?.line ?? `${Math.round(100 * live)} %`}</span>
            </div>
          )}
          <RunState model={model} />
          {failure.value && !data && <Failed failure={failure.value} />}
          {data ? <Picture model={model} data={data} /> : !failure.value && <Waiting height={320} />}
        </>
      )}
    </BenchPage>
  );
}
