// Transformer: click through the model, see what its blocks do with this sentence, change attention and see the output.
import { computed } from '@preact/signals';
import { follow } from '../api';
import { mapTable } from '../export';
import { chosen, Model } from '../models';
import { fixed, num, word } from '../num';
import { hover, isObject, settings } from '../store';
import { BenchPage, Choice, ModelSelect, Select, Shown, Slider, TextField, tryThis, WithModel, Written } from '../ui';
import { Key, rich, t } from '../words';
import { Changed } from '../views/changed';
import { scaleOf } from '../views/colours';
import { Diagram } from '../views/diagram';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { I, M, N, O, Row, Sub } from '../maths';
import { HeadMap, Maps, namesOf } from './heads';

interface Edit {
  name: string;
  layer: number;
  head?: number;
  query?: number;
  do: string;
  key?: number;
  value?: number;
  keys?: number[];
}
const kinds = ['off', 'flat', 'force', 'temperature', 'mask'] as const;
const s = settings('transformer', {
  model: '', text: null as string | null, at: 'decoder.1.cross', head: 1, query: -1, do: 'flat', heads: 'all', key: 0, value: 0.25, edits: [] as Edit[],
}, {
  edits: (value) => Array.isArray(value) && value.every((one) => isObject(one) && ['encoder', 'decoder', 'cross'].includes(String(one.name)) && Number.isInteger(one.layer) && kinds.includes(one.do as 'off') && (one.do !== 'mask' || Array.isArray(one.keys))),
});

interface Block {
  path: string;
  name: string;
  shape: [number, number];
  in?: number[];
  norm: number[];
  change?: number[];
}
interface Blocks {
  source_tokens: string[];
  input_tokens: string[];
  output_tokens: string[];
  blocks: Block[];
  translation: { text: string; log_probability: number; log_probabilities: number[] };
}
interface Written {
  hypotheses: { text: string; log_probability: number }[];
}

const fits = (one: Model) => one.kind === 'transformer';
const model = computed(() => chosen('translation', s.model.value, fits));
const text = computed(() => s.text.value ?? model.value?.examples?.[2] ?? model.value?.examples?.[0] ?? '');
const ask = () => (model.value && text.value.trim() ? { model: model.value.id, text: text.value } : null);
const edits = computed(() => (s.edits.value.length ? { edits: s.edits.value } : {}));
const base = follow<Blocks>(() => {
  const body = ask();
  return body && { path: '/blocks', body };
}, 150);
const forced = () => {
  const body = ask();
  const data = base.value.data;
  return body && data ? { ...body, target: data.translation.text } : null;
};
// The same words through the edited model: how its numbers and its opinion of them change.
const edited = follow<Blocks>(() => {
  const body = forced();
  return body && s.edits.value.length ? { path: '/blocks', body: { ...body, ...edits.value } } : null;
});
// What the edited model writes on its own.
const written = follow<Written>(() => {
  const body = ask();
  return body && s.edits.value.length ? { path: '/translate', body: { ...body, ...edits.value, hypotheses: 1 } } : null;
});
const reading = (name: string) =>
  follow<Maps>(() => {
    const body = forced();
    return body && { path: '/maps', body: { ...body, ...edits.value, reading: name } };
  });
const readings = { weights: reading('weights'), values: reading('values'), rollout: reading('rollout') };

/** The attention that belongs to what is picked in the diagram. */
const attention = computed(() => {
  const [side, layer, kind] = s.at.value.split('.');
  const most = (side === 'encoder' ? model.value?.layers?.encoder : model.value?.layers?.decoder) ?? 1;
  const number = Number.isInteger(Number(layer)) ? Math.min(most, Number(layer) + 1) : layer === 'output' ? most : 1;
  return { name: side === 'encoder' ? 'encoder' : kind === 'self' ? 'decoder' : 'cross', layer: number };
});
const pathOf = (edit: Edit) => `${edit.name === 'encoder' ? 'encoder' : 'decoder'}.${edit.layer - 1}.${edit.name === 'cross' ? 'cross' : 'self'}`;

function Formula({ data }: { data: Blocks }) {
  const path = s.at.value.replace(/\.(self|cross)$/, '');
  const block = (edited.value.data && s.edits.value.length ? edited.value.data : data).blocks.find((one) => one.path === path);
  if (!block?.change || !block.in) return <p class="soft">{t('formulaPick')}</p>;
  const i = Math.max(0, Math.min(block.norm.length - 1, s.query.value));
  const norm = (of: preact.ComponentChildren) => (
    <Row>
      <O>‖</O>
      {of}
      <O>‖</O>
    </Row>
  );
  return (
    <>
      <M block>
        <Sub of={<I>x</I>} by={<Row><I>l</I><O>+</O><mn>1</mn></Row>} />
        <O>=</O>
        <Sub of={<I>x</I>} by={<I>l</I>} />
        <O>+</O>
        <mi>Δ</mi>
      </M>
      <p>
        <b class="accent">{word((path.startsWith('encoder') ? data.source_tokens : data.input_tokens)[i] ?? '')}</b> · {t('blockN', { part: t(path.startsWith('encoder') ? 'part_encoder' : 'part_decoder'), n: Number(path.split('.')[1]) + 1 })}
      </p>
      {[
        [<Sub of={<I>x</I>} by={<I>l</I>} />, block.in[i], 'streamIn'],
        [<mi>Δ</mi>, block.change[i], 'streamChange'],
        [<Sub of={<I>x</I>} by={<Row><I>l</I><O>+</O><mn>1</mn></Row>} />, block.norm[i], 'streamOut'],
      ].map(([what, value, say]) => (
        <p class="numbers">
          <M>
            {norm(what as preact.ComponentChildren)}
            <O>=</O>
            <N>{num(value as number)}</N>
          </M>{' '}
          <span class="soft">{t(say as Key)}</span>
        </p>
      ))}
    </>
  );
}

/** The raw weights of the head, the same times the length of the values, and the rollout: side by side, one scale each. */
function Readings() {
  const { name, layer } = attention.value;
  return (
    <div class="triple">
      {(['weights', 'values', 'rollout'] as const).map((kind) => (
        <Shown of={readings[kind]} height={260}>
          {(data) => {
            const here = data.maps.filter((one) => one.name === name && one.layer === layer);
            const map: HeadMap | undefined = here.find((one) => one.head === s.head.value) ?? here[0];
            if (!map?.values) return <div class="state empty">{map ? t('longText') : t('noReading')}</div>;
            const heat: HeatProps = {
              values: map.values,
              ...namesOf(data, name),
              scale: kind === 'weights' ? { low: 0, high: 1 } : scaleOf(map.values),
              label: t(`reading_${kind}` as Key),
              linked: true,
              litRow: s.query.value >= 0 ? s.query.value : undefined,
              maxCell: 34,
              rowName: t('queryRow'),
              columnName: t('keyColumn'),
              legend: t(kind === 'weights' ? 'weight' : 'valueIs'),
              onPick: (row, column) => ((s.query.value = s.query.value === row ? -1 : row), (s.key.value = column)),
            };
            return (
              <Figure name={kind} title={heat.label} svg={() => heatSvg(heat)} table={() => mapTable(heat.values, heat.rows, heat.columns)} json={() => map} command={data.command} note={t(`readingNote_${kind}` as Key)}>
                <Heat {...heat} />
              </Figure>
            );
          }}
        </Shown>
      ))}
    </div>
  );
}

const describe = (edit: Edit, tokens: { rows: string[]; columns: string[] }) => {
  const where = `${t(`part_${edit.name}` as Key)} ${edit.layer}${edit.head ? `.${edit.head}` : ''}${edit.query === undefined ? '' : ` · ${tokens.rows[edit.query] ?? edit.query}`}`;
  const what = edit.do === 'force' ? `→ ${tokens.columns[edit.key!] ?? edit.key}` : edit.do === 'mask' ? `≠ ${tokens.columns[edit.keys![0]] ?? edit.keys![0]}` : edit.do === 'temperature' ? num(edit.value) : '';
  return `${where}: ${t(`do_${edit.do}` as Key)} ${what}`.trim();
};

function EditPanel({ data, of }: { data: Blocks; of: Model }) {
  const { name, layer } = attention.value;
  const tokens = namesOf(data as unknown as Maps, name);
  const rows = tokens.rows.map((token, i) => ({ value: String(i), label: `${i + 1}  ${token}` }));
  const columns = tokens.columns.map((token, i) => ({ value: String(i), label: `${i + 1}  ${token}` }));
  const query = Math.min(s.query.value, rows.length - 1);
  const key = Math.min(s.key.value, columns.length - 1);
  const apply = () => {
    const edit: Edit = { name, layer, do: s.do.value };
    if (s.heads.value === 'one') edit.head = s.head.value;
    if (query >= 0) edit.query = query;
    if (edit.do === 'force') edit.key = key;
    if (edit.do === 'mask') edit.keys = [key];
    if (edit.do === 'temperature') edit.value = s.value.value;
    s.edits.value = [...s.edits.value, edit];
  };
  return (
    <section class="card" aria-label={t('editTitle')} data-figure="edits">
      <header>
        <h2>{t('editTitle')}</h2>
      </header>
      <p class="note first">{rich('editNote', { part: t(`part_${name}` as Key), layer })}</p>
      <div class="controls">
        <Choice label={t('doWhat')} value={s.do.value} options={kinds.map((value) => ({ value: value as string, label: t(`do_${value}` as Key) }))} set={(value) => (s.do.value = value)} />
        <Choice label={t('whichHeads')} value={s.heads.value} options={['all', 'one'].map((value) => ({ value, label: t(`heads_${value}` as Key, { n: s.head.value }) }))} set={(value) => (s.heads.value = value)} />
        <Choice label={t('head')} value={s.head.value} options={Array.from({ length: of.heads ?? 1 }, (_, i) => i + 1)} set={(n) => (s.head.value = n)} />
        <Select label={t('whichRow')} value={String(query)} options={[{ value: '-1', label: t('everyRow') }, ...rows]} set={(value) => (s.query.value = Number(value))} />
        {(s.do.value === 'force' || s.do.value === 'mask') && <Select label={t(s.do.value === 'force' ? 'forceOn' : 'hideKey')} value={String(key)} options={columns} set={(value) => (s.key.value = Number(value))} />}
        {s.do.value === 'temperature' && <Slider label={t('temperature')} value={s.value.value} low={0.05} high={20} log set={(value) => (s.value.value = value)} />}
        <button type="button" class="plain strong" onClick={apply}>
          {t('applyEdit')}
        </button>
      </div>
      {s.edits.value.length > 0 && (
        <ul class="chips" aria-label={t('editsMade')}>
          {s.edits.value.map((edit, i) => (
            <li>
              {describe(edit, namesOf(data as unknown as Maps, edit.name))}
              <button type="button" aria-label={t('removeEdit')} title={t('removeEdit')} onClick={() => (s.edits.value = s.edits.value.filter((_, k) => k !== i))}>
                ×
              </button>
            </li>
          ))}
          <li class="bare">
            <button type="button" class="plain" onClick={() => (s.edits.value = [])}>
              {t('undoAll')}
            </button>
          </li>
        </ul>
      )}
      <Outcome data={data} />
    </section>
  );
}

function Outcome({ data }: { data: Blocks }) {
  const any = s.edits.value.length > 0;
  const after = any ? edited.value.data : null;
  const now = any ? written.value.data?.hypotheses[0] : null;
  const failure = any ? (edited.value.failure ?? written.value.failure) : null;
  const words = data.output_tokens;
  const before = data.translation.log_probabilities;
  const then = after && after.translation.text === data.translation.text ? after.translation.log_probabilities : null;
  return (
    <div class="outcomes">
      <dl class="outcome">
        <dt>{t('writtenBefore')}</dt>
        <dd>
          {data.translation.text} <small class="soft num">log p {num(data.translation.log_probability)}</small>
        </dd>
        <dt>{t('writtenNow')}</dt>
        <dd aria-live="polite">
          {!any && <span class="soft">{t('noEdit')}</span>}
          {now && (now.text === data.translation.text ? <>{now.text} <small class="soft">{t('unchanged')}</small></> : <Changed from={data.translation.text} to={now.text} />)}
        </dd>
      </dl>
      {failure && <p class="second" role="alert">{failure.error}</p>}
      <table class="wordp">
        <caption>{t('wordTable')}</caption>
        <tbody>
          {words.map((token, i) => (
            <tr class={hover.value?.row === i ? 'on' : ''}>
              <th scope="row">{word(token)}</th>
              <td class="barcell">
                <i class="bar pale" style={{ width: `${100 * Math.exp(before[i] ?? -99)}%` }} />
                {then && <i class="bar" style={{ width: `${100 * Math.exp(then[i] ?? -99)}%` }} />}
              </td>
              <td class="num">{fixed(Math.exp(before[i] ?? -99), 3)}</td>
              <td class="num">{then && <b class={then[i] < before[i] - 0.05 ? 'second' : ''}>{fixed(Math.exp(then[i]), 3)}</b>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Stream({ data }: { data: Blocks }) {
  const now = s.edits.value.length && edited.value.data ? edited.value.data : data;
  return (
    <div class="pair">
      {(['encoder', 'decoder'] as const).map((side) => {
        const list = now.blocks.filter((one) => one.path.startsWith(side) && one.path !== 'decoder.output');
        const tokens = (side === 'encoder' ? now.source_tokens : now.input_tokens).map(word);
        const values = list.map((one) => one.norm);
        const names = list.map((one) => (one.name === 'embedding' ? t('embeddingBox') : t('afterBlock', { n: Number(one.path.split('.')[1]) + 1 })));
        const at = list.findIndex((one) => s.at.value.startsWith(one.path));
        const heat: HeatProps = { values, rows: names, columns: tokens, scale: scaleOf(values), label: t('streamTitle', { part: t(`part_${side}` as Key) }), litRow: at >= 0 ? at : undefined, maxCell: 44, legend: t('length'), rowName: t('depth'), columnName: t('token'), onPick: (row) => (s.at.value = list[row].path) };
        return (
          <Figure name={`stream-${side}`} title={heat.label} svg={() => heatSvg(heat)} table={() => ({ header: ['block', 'token', 'in', 'change', 'norm'], rows: list.flatMap((one) => one.norm.map((x, i) => [one.path, tokens[i], one.in?.[i] ?? '', one.change?.[i] ?? '', x])) })} json={() => list} note={t('streamNote')}>
            <Heat {...heat} />
          </Figure>
        );
      })}
    </div>
  );
}

function Picture({ data, of }: { data: Blocks; of: Model }) {
  const size = data.blocks[0].shape[1];
  const output = data.blocks.find((one) => one.path === 'decoder.output');
  return (
    <>
      <div class="pair diagrams">
        <Figure name="diagram" title={t('diagramTitle')} json={() => data.blocks} table={() => ({ header: ['block', 'rows', 'columns'], rows: data.blocks.map((one) => [one.path, ...one.shape]) })} note={t('diagramNote')}>
          <Diagram
            encoder={of.layers?.encoder ?? 1}
            decoder={of.layers?.decoder ?? 1}
            heads={of.heads ?? 1}
            read={data.source_tokens.map(word)}
            written={data.output_tokens.map(word)}
            width={size}
            vocabulary={output?.shape[1] ?? 0}
            at={s.at.value}
            edited={s.edits.value.map(pathOf)}
            pick={(path) => ((s.at.value = path), (s.query.value = -1))}
          />
        </Figure>
        <EditPanel data={data} of={of} />
      </div>
      <Readings />
      <Stream data={data} />
    </>
  );
}

export function TransformerBench() {
  const { data } = base.value;
  return (
    <BenchPage
      title={t('transformerTitle')}
      notice={rich('transformerNotice')}
      formula={data ? <Formula data={data} /> : undefined}
      tries={[
        tryThis('transformer', 'tryFlat', 'tryFlatAsk', { text: s.text.value, at: 'decoder.1.cross', do: 'flat', edits: [{ name: 'cross', layer: Math.min(2, model.value?.layers?.decoder ?? 1), do: 'flat' }] }),
        tryThis('transformer', 'tryForceRow', 'tryForceRowAsk', { text: s.text.value, at: 'decoder.1.cross', do: 'force', query: 1, key: 3, edits: [1, 2].slice(0, model.value?.layers?.decoder ?? 1).map((layer) => ({ name: 'cross', layer, query: 1, do: 'force', key: 3 })) }),
        tryThis('transformer', 'tryOffSelf', 'tryOffSelfAsk', { text: s.text.value, at: 'decoder.0.self', do: 'off', edits: [{ name: 'decoder', layer: 1, do: 'off' }] }),
      ]}
    >
      <WithModel task="translation" id={s.model.value} fits={fits}>
        {(of) => (
          <>
            <div class="controls top">
              <TextField label={t('sentence')} wide value={text.value} set={(value) => ((s.text.value = value), (s.edits.value = []), (s.query.value = -1))} />
              <ModelSelect task="translation" id={s.model} fits={fits} />
            </div>
            <Written text={text.value}>
              <Shown of={base} height={480}>
                {(now) => <Picture data={now} of={of} />}
              </Shown>
            </Written>
          </>
        )}
      </WithModel>
    </BenchPage>
  );
}
