// Heads: all of them as small maps, one of them large; switch some off and see what the model writes without them.
import { computed } from '@preact/signals';
import { follow } from '../api';
import { mapTable } from '../export';
import { chosen, Model } from '../models';
import { num, word } from '../num';
import { settings } from '../store';
import { BenchPage, Choice, ModelSelect, Shown, Slider, TextField, tryThis, WithModel, Written } from '../ui';
import { Key, rich, t } from '../words';
import { Bars } from '../views/bars';
import { Changed } from '../views/changed';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { TileMap } from '../views/tiles';
import { I, M, N, O, Row, Sub, Sum } from '../maths';

type Off = [string, number, number]; // part, layer, head
const s = settings('heads', { model: '', text: null as string | null, name: 'cross', layer: 1, head: 1, off: [] as Off[], view: '' }, {
  off: (value) => Array.isArray(value) && value.every((one) => Array.isArray(one) && typeof one[0] === 'string' && Number.isInteger(one[1]) && Number.isInteger(one[2])),
});

export interface HeadMap {
  name: string;
  layer: number;
  head: number;
  shape: [number, number];
  values?: number[][];
  entropy?: number;
  confidence?: number;
}
export interface Maps {
  source_tokens: string[];
  input_tokens: string[];
  output_tokens: string[];
  target: string;
  maps: HeadMap[];
  session: string;
  command?: string;
}
interface Heads {
  text: string;
  log_probability: number;
  baseline: { text: string; log_probability: number };
  name: string;
  difference: number[][];
  importance?: { layer: number; head: number; value: number }[];
}

const hasHeads = (one: Model) => (one.heads ?? 0) > 0 && one.kind === 'transformer';
const model = computed(() => chosen('translation', s.model.value, hasHeads));
const text = computed(() => s.text.value ?? model.value?.examples?.[1] ?? model.value?.examples?.[0] ?? '');
const part = computed(() => (model.value?.maps?.includes(s.name.value) ? s.name.value : (model.value?.maps?.[0] ?? 'cross')));
// Heads that a smaller model does not have are not switched off in it.
const switched = computed(() =>
  s.off.value.filter(([name, layer, head]) => {
    const layers = model.value?.layers?.[name === 'encoder' ? 'encoder' : 'decoder'] ?? 0;
    return !!model.value?.maps?.includes(name) && layer >= 1 && layer <= layers && head >= 1 && head <= (model.value.heads ?? 0);
  }),
);
const off = computed(() => switched.value.map(([name, layer, head]) => ({ name, layer, head })));
const heads = follow<Heads>(
  () =>
    model.value && text.value.trim()
      ? { path: '/heads', body: { model: model.value.id, text: text.value, name: part.value, measure: 'importance', ...(off.value.length ? { off: off.value } : {}) } }
      : null,
  150,
);
// The maps of the whole model's translation, as the model without those heads reads it.
const maps = follow<Maps>(() => {
  const data = heads.value.data;
  if (!model.value || !data || !text.value.trim()) return null;
  return { path: '/maps', body: { model: model.value.id, text: text.value, target: data.baseline.text, ...(off.value.length ? { edits: off.value.map((one) => ({ ...one, do: 'off' })) } : {}) } };
});
// A head that is off gives nothing; its place shows what it looked at before.
const plain = follow<Maps>(() => {
  const data = heads.value.data;
  return model.value && data && off.value.length ? { path: '/maps', body: { model: model.value.id, text: text.value, target: data.baseline.text } } : null;
});
const shownMap = (map: HeadMap): HeadMap => (isOff(map.name, map.layer, map.head) && plain.value.data?.maps.find((one) => one.name === map.name && one.layer === map.layer && one.head === map.head)) || map;

const isOff = (name: string, layer: number, head: number) => switched.value.some((one) => one[0] === name && one[1] === layer && one[2] === head);
const toggle = (name: string, layer: number, head: number) =>
  (s.off.value = isOff(name, layer, head) ? switched.value.filter((one) => !(one[0] === name && one[1] === layer && one[2] === head)) : [...switched.value, [name, layer, head]]);

export const namesOf = (data: Maps, name: string) => {
  if (name === 'encoder') return { rows: data.source_tokens.map(word), columns: data.source_tokens.map(word) };
  if (name === 'decoder') return { rows: data.input_tokens.map(word), columns: data.input_tokens.map(word) };
  return { rows: data.output_tokens.map(word), columns: data.source_tokens.map(word) };
};

function Grid({ data }: { data: Maps }) {
  const here = data.maps.filter((map) => map.name === part.value).map(shownMap);
  const layers = [...new Set(here.map((map) => map.layer))];
  const count = Math.max(1, ...here.map((map) => map.head));
  const columns = count <= 5 ? count : Math.min(8, Math.ceil(count / Math.ceil(count / 6)));
  return (
    <div class="headgrid">
      {layers.map((layer) => (
        <div class="layer" role="group" aria-label={t('layerN', { n: layer })}>
          <h3>{t('layerN', { n: layer })}</h3>
          <div class="row" style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
            {here
              .filter((map) => map.layer === layer)
              .map((map) => {
                const silent = isOff(map.name, map.layer, map.head);
                const lit = s.layer.value === layer && s.head.value === map.head;
                const label = t('layerHead', { layer, head: map.head });
                return (
                  <div class={`one${lit ? ' on' : ''}${silent ? ' silent' : ''}`}>
                    <button type="button" class="look" aria-pressed={lit} aria-label={label} title={label} onClick={() => ((s.layer.value = layer), (s.head.value = map.head))}>
                      {map.values ? <Heat small values={map.values} rows={[]} columns={[]} scale={{ low: 0, high: 1 }} label={label} /> : <span class="toolong">{map.shape.join(' × ')}</span>}
                    </button>
                    <label class="switch">
                      <input type="checkbox" role="switch" checked={!silent} aria-label={t('headOn', { head: label })} onChange={() => toggle(map.name, map.layer, map.head)} />
                      <span>{silent ? t('headIsOff', { n: map.head }) : t('headN', { n: map.head })}</span>
                    </label>
                  </div>
                );
              })}
          </div>
        </div>
      ))}
    </div>
  );
}

function Large({ data }: { data: Maps }) {
  const here = data.maps.filter((map) => map.name === part.value).map(shownMap);
  const map = here.find((one) => one.layer === s.layer.value && one.head === s.head.value) ?? here[0];
  if (!map) return null;
  const names = namesOf(data, map.name);
  const title = `${t(`part_${map.name}` as Key)} · ${t('layerHead', { layer: map.layer, head: map.head })}`;
  const silent = isOff(map.name, map.layer, map.head);
  if (!map.values) {
    return <TileMap session={data.session} name={map.name} layer={map.layer} head={map.head} rows={names.rows} columns={names.columns} title={title} view={s.view} command={data.command} />;
  }
  const heat: HeatProps = { values: map.values, ...names, scale: { low: 0, high: 1 }, label: title, linked: true, maxCell: 40, rowName: t(map.name === 'cross' ? 'written' : 'queryRow'), columnName: t(map.name === 'cross' ? 'read' : 'keyColumn') };
  return (
    <Figure
      name="head"
      title={title}
      svg={() => heatSvg(heat)}
      table={() => mapTable(heat.values, heat.rows, heat.columns)}
      json={() => map}
      command={data.command}
      note={
        <>
          {silent && <b class="second">{t('headSilent')} </b>}
          {t('headNumbers', { entropy: num(map.entropy), confidence: num(map.confidence) })}
        </>
      }
    >
      <Heat {...heat} />
    </Figure>
  );
}

function Outcome({ data }: { data: Heads }) {
  const none = switched.value.length === 0;
  const change = data.log_probability - data.baseline.log_probability;
  return (
    <Figure name="outcome" title={t('outcomeTitle')} noPicture table={() => ({ header: ['heads off', 'text', 'log_probability of the first text'], rows: [['', data.baseline.text, data.baseline.log_probability], [switched.value.map((o) => o.join(' ')).join('; '), data.text, data.log_probability]] })} json={() => data}>
      <dl class="outcome">
        <dt>{t('withAll')}</dt>
        <dd>{data.baseline.text}</dd>
        <dt>{none ? t('withoutNone') : t('withoutHeads', { count: switched.value.length })}</dt>
        <dd aria-live="polite">{none ? <span class="soft">{t('switchSome')}</span> : data.text === data.baseline.text ? <>{data.text} <small class="soft">{t('unchanged')}</small></> : <Changed from={data.baseline.text} to={data.text} />}</dd>
        <dt>{t('oldLikely')}</dt>
        <dd class="num">
          log p {num(data.baseline.log_probability)}
          {!none && (
            <>
              {' → '}
              <b class={change < -0.05 ? 'second' : 'accent'}>{num(data.log_probability)}</b> <span class="soft">({t('timesAsLikely', { factor: num(Math.exp(change)) })})</span>
            </>
          )}
        </dd>
      </dl>
      {!none && (
        <button type="button" class="plain" onClick={() => (s.off.value = [])}>
          {t('allOn')}
        </button>
      )}
    </Figure>
  );
}

function Importance({ data }: { data: Heads }) {
  const all = data.importance ?? [];
  const least = [...all].sort((a, b) => a.value - b.value);
  const others = switched.value.filter((one) => one[0] !== data.name);
  const count = switched.value.length - others.length;
  return (
    <Figure name="importance" title={t('importanceTitle')} noPicture table={() => ({ header: ['part', 'layer', 'head', 'importance'], rows: all.map((one) => [data.name, one.layer, one.head, one.value]) })} json={() => all} note={t('importanceNote')}>
      <Slider
        label={t('pruneTo')}
        value={count}
        low={0}
        high={Math.max(1, all.length)}
        step={1}
        show={t('pruneShow', { off: count, all: all.length, share: Math.round((100 * (all.length - count)) / Math.max(1, all.length)) })}
        set={(n) => (s.off.value = [...others, ...least.slice(0, n).map((one): Off => [data.name, one.layer, one.head])])}
      />
      <Bars
        label={t('importanceTitle')}
        bars={all.map((one) => ({
          label: t('layerHead', { layer: one.layer, head: one.head }),
          value: one.value,
          on: one.layer === s.layer.value && one.head === s.head.value,
          cut: isOff(data.name, one.layer, one.head),
          onPick: () => ((s.layer.value = one.layer), (s.head.value = one.head)),
        }))}
      />
    </Figure>
  );
}

function Difference({ data }: { data: Heads }) {
  const all = data.importance ?? [];
  const names = data.difference.map((_, i) => (all[i] ? `${all[i].layer}.${all[i].head}` : String(i + 1)));
  const heat: HeatProps = { values: data.difference, rows: names, columns: names, scale: { low: 0, high: 1 }, label: t('apartTitle'), maxCell: 38, legend: t('apart'), rowName: t('layerDotHead'), columnName: t('layerDotHead'), onPick: (row) => all[row] && ((s.layer.value = all[row].layer), (s.head.value = all[row].head)) };
  return (
    <Figure name="apart" title={heat.label} svg={() => heatSvg(heat)} table={() => mapTable(heat.values, names, names)} json={() => data.difference} note={t('apartNote')}>
      <Heat {...heat} />
    </Figure>
  );
}

function Formula({ data }: { data: Heads }) {
  const one = data.importance?.find((x) => x.layer === s.layer.value && x.head === s.head.value);
  return (
    <>
      <M block>
        <I>o</I>
        <O>=</O>
        <Sum over={<I>h</I>} />
        <Sub of={<I>W</I>} by={<I>h</I>} />
        <Sub of={<I>α</I>} by={<I>h</I>} />
        <Sub of={<I>V</I>} by={<I>h</I>} />
      </M>
      {one && (
        <p class="numbers">
          <M>
            <Sub of={<I>I</I>} by={<mn>{`${one.layer}.${one.head}`}</mn>} />
            <O>=</O>
            <I>log</I>
            <I>p</I>
            <O>−</O>
            <Row>
              <I>log</I>
              <Sub of={<I>p</I>} by={<mtext>{t('withoutIt')}</mtext>} />
            </Row>
            <O>=</O>
            <N>{num(one.value)}</N>
          </M>
        </p>
      )}
    </>
  );
}

export function HeadsBench() {
  const { data } = heads.value;
  const best = data?.importance?.length ? data.importance.reduce((a, b) => (b.value > a.value ? b : a)) : undefined;
  const weakest = [...(data?.importance ?? [])].sort((a, b) => a.value - b.value);
  const name = part.value;
  const offOf = (list: { layer: number; head: number }[]): Off[] => list.map((one) => [name, one.layer, one.head]);
  const keep = { text: s.text.value, name };
  return (
    <BenchPage
      title={t('headsTitle')}
      notice={rich('headsNotice')}
      formula={data ? <Formula data={data} /> : undefined}
      tries={[
        tryThis('heads', 'tryBestOff', 'tryBestOffAsk', { ...keep, ...(best ? { layer: best.layer, head: best.head, off: offOf([best]) } : {}) }),
        tryThis('heads', 'tryHalf', 'tryHalfAsk', { ...keep, off: offOf(weakest.slice(0, Math.floor(weakest.length / 2))) }),
        tryThis('heads', 'trySelf', 'trySelfAsk', { text: s.text.value, name: 'encoder' }),
      ]}
    >
      <WithModel task="translation" id={s.model.value} fits={hasHeads}>
        {(of) => (
          <>
            <div class="controls top">
              <TextField label={t('sentence')} wide value={text.value} set={(value) => (s.text.value = value)} />
              <ModelSelect task="translation" id={s.model} fits={hasHeads} />
              <Choice label={t('part')} value={name} options={(of.maps ?? []).map((value) => ({ value, label: t(`part_${value}` as Key) }))} set={(value) => (s.name.value = value)} />
            </div>
            <Written text={text.value}>
              <Shown of={maps} height={420}>
                {(now) => (
                  <>
                    <div class="pair">
                      <Figure name="heads" title={t('gridTitle', { part: t(`part_${name}` as Key) })} noPicture json={() => now.maps} table={() => ({ header: ['part', 'layer', 'head', 'entropy', 'confidence'], rows: now.maps.map((m) => [m.name, m.layer, m.head, m.entropy ?? '', m.confidence ?? '']) })} command={now.command} note={t('gridNote')}>
                        <Grid data={now} />
                      </Figure>
                      {data && <Outcome data={data} />}
                    </div>
                    <div class="pair">
                      <Large data={now} />
                      {data && (
                        <div class="stack">
                          <Importance data={data} />
                          <Difference data={data} />
                        </div>
                      )}
                    </div>
                  </>
                )}
              </Shown>
            </Written>
            {heads.value.failure && !heads.value.busy && <Shown of={heads}>{() => null}</Shown>}
          </>
        )}
      </WithModel>
    </BenchPage>
  );
}
