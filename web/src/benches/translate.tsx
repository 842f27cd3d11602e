// Translate: type a sentence, see where every written word looked, what else it could have been, and what the beam kept.
import { computed } from '@preact/signals';
import { follow } from '../api';
import { mapTable } from '../export';
import { chosen, Model, streamed } from '../models';
import { fixed, join, num, word } from '../num';
import { hover, point, preset, settings } from '../store';
import { BenchPage, Choice, ModelSelect, Shown, TextField, tryThis, WithModel, Written } from '../ui';
import { rich, t } from '../words';
import { Bars } from '../views/bars';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { Lines } from '../views/lines';
import { BeamTree, TreeNode } from '../views/tree';
import { I, M, O, Row, Sub, Sum } from '../maths';

const s = settings('translate', { model: '', text: null as string | null, beam: 4, rank: 0, word: 0, layer: 0, head: 0, force: '', reference: '' });

interface Step {
  token: string;
  log_probability: number;
  top: { token: string; probability: number }[];
}
export interface Hypothesis {
  text: string;
  tokens: string[];
  log_probability: number;
  score: number;
  steps: Step[];
  attention: number[][];
}
interface Translation {
  source_tokens: string[];
  unknown: (number | string)[];
  hypotheses: Hypothesis[];
  forced?: Hypothesis;
  reference?: Hypothesis;
  verdict?: 'search' | 'model' | 'equal';
  gold?: { links: [number, number][]; aer: number | null } | null;
  tree?: TreeNode[];
  command?: string;
}
interface Maps {
  maps: { name: string; layer: number; head: number; values?: number[][] }[];
}

const model = computed(() => chosen('translation', s.model.value));
const text = computed(() => s.text.value ?? model.value?.examples?.[0] ?? '');
const translation = follow<Translation>(
  () =>
    model.value && text.value.trim()
      ? {
          path: '/translate',
          body: {
            model: model.value.id,
            text: text.value,
            beam: s.beam.value,
            hypotheses: s.beam.value,
            top: 6,
            tree: true,
            ...(s.force.value.trim() ? { force: s.force.value } : {}),
            ...(s.reference.value.trim() ? { reference: s.reference.value } : {}),
          },
        }
      : null,
  150,
);

/** The hypothesis that is looked at: one of the beam, the text written by hand, or the reference. */
const rows = (data: Translation) => [
  ...data.hypotheses.map((h, i) => ({ h, kind: 'beam' as const, rank: i })),
  ...(data.forced ? [{ h: data.forced, kind: 'forced' as const, rank: -1 }] : []),
  ...(data.reference ? [{ h: data.reference, kind: 'reference' as const, rank: -2 }] : []),
];
const shown = (data: Translation) => rows(data).find((row) => row.rank === s.rank.value) ?? rows(data)[0];

/** One head's map instead of the mean over heads: asked for only when a head is picked. */
const maps = follow<Maps>(() => {
  const data = translation.value.data;
  if (!model.value || !data?.hypotheses.length || s.layer.value === 0) return null;
  return { path: '/maps', body: { model: model.value.id, text: text.value, target: shown(data).h.text, reading: 'weights' } };
});

function attention(data: Translation): number[][] {
  const { h } = shown(data);
  if (s.layer.value === 0) return h.attention;
  const map = maps.value.data?.maps.find((m) => m.name === 'cross' && m.layer === s.layer.value && m.head === Math.max(1, s.head.value));
  return map?.values && map.values.length >= h.steps.length ? map.values.slice(0, h.steps.length) : h.attention;
}

const unknownAt = (data: Translation) =>
  data.unknown.flatMap((u) => (typeof u === 'number' ? [u] : data.source_tokens.flatMap((token, j) => (token === u || word(token) === u ? [j] : []))));

/** The unknown words as they were typed, where words and tokens can be paired; else the token that stands for them. */
function unknownWords(data: Translation): string[] {
  const read = data.source_tokens.filter((token) => !/^<(bos|eos)>$/.test(token));
  const typed = [text.value.trim().split(/\s+/), text.value.match(/[\p{L}\p{N}'’-]+|[^\s\p{L}\p{N}]/gu) ?? []].find((words) => words.length === read.length);
  return [...new Set(unknownAt(data).map((j) => typed?.[j] ?? word(data.source_tokens[j])))];
}

function Formula({ data }: { data: Translation }) {
  const { h } = shown(data);
  const at = Math.min(hover.value?.row ?? s.word.value, h.steps.length - 1);
  const weights = attention(data)[at] ?? [];
  const order = weights.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const terms = h.steps.slice(0, 3);
  return (
    <>
      <p>
        <b class="accent">{word(h.steps[at]?.token ?? '')}</b> {t('listensTo')}
      </p>
      <Bars
        label={t('listensTo')}
        high={1}
        bars={order.map(([w, j]) => ({ label: word(data.source_tokens[j] ?? ''), value: w, on: hover.value?.column === j, onPoint: (on) => (on ? point(at, j) : point()) }))}
      />
      <M block>
        <I>log</I>
        <I>p</I>
        <O>=</O>
        <Sum over={<I>t</I>} />
        <I>log</I>
        <I>p</I>
        <O>(</O>
        <Sub of={<I>y</I>} by={<I>t</I>} />
        <O>|</O>
        <Sub of={<I>y</I>} by={<Row><O>&lt;</O><I>t</I></Row>} />
        <O>,</O>
        <I>x</I>
        <O>)</O>
      </M>
      <p class="numbers num">
        ={' '}
        {terms.map((step, i) => (
          <>
            {i > 0 && ' + '}
            <b class="accent term">({num(step.log_probability, 2)})</b>
          </>
        ))}
        {h.steps.length > 3 && ' + …'}{' '}
        <span class="term">
          = <b class="accent">{num(h.log_probability)}</b>
        </span>
        <br />
        <span class="soft">{t('scoreIs', { score: num(h.score), words: h.steps.length })}</span>
      </p>
    </>
  );
}

function verdictText(data: Translation) {
  return data.verdict ? <p class="verdict">{rich(`verdict_${data.verdict}`)}</p> : null;
}

function BeamTable({ data }: { data: Translation }) {
  const all = rows(data);
  const worst = Math.min(...all.map((row) => row.h.score));
  const current = shown(data);
  return (
    <table class="beam">
      <thead>
        <tr>
          <th scope="col">{t('translation')}</th>
          <th scope="col" colSpan={2}>
            {t('score')}
          </th>
          <th scope="col" class="num">
            log p
          </th>
        </tr>
      </thead>
      <tbody>
        {all.map(({ h, kind, rank }) => (
          <tr class={h === current.h ? 'on' : ''}>
            <td>
              <button type="button" class="link" aria-pressed={h === current.h} onClick={() => (s.rank.value = rank)}>
                {h.text || '∅'}
              </button>
              {kind !== 'beam' && <small>{t(kind)}</small>}
            </td>
            <td class="barcell">
              <i class="bar" style={{ width: `${Math.max(4, 100 * Math.exp(h.score - (all[0].h.score > worst ? Math.max(...all.map((r) => r.h.score)) : h.score)))}%` }} />
            </td>
            <td class="num" title={String(h.score)}>
              {fixed(h.score)}
            </td>
            <td class="num" title={String(h.log_probability)}>
              {fixed(h.log_probability, 2)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Alternatives({ data }: { data: Translation }) {
  const { h } = shown(data);
  const at = Math.min(s.word.value, h.steps.length - 1);
  const step = h.steps[at];
  if (!step) return null;
  const insert = (token: string) => {
    const tokens = h.steps.map((one) => one.token);
    tokens[at] = token;
    s.force.value = join(tokens);
    s.rank.value = -1;
  };
  return (
    <>
      <p class="so-far">
        {h.steps.slice(0, at).map((one) => `${word(one.token)} `)}
        <b class="accent">{word(step.token)}</b>
      </p>
      <Bars
        label={t('alternatives')}
        high={1}
        bars={step.top.map((one) => ({
          label: word(one.token),
          value: one.probability,
          on: one.token === step.token,
          title: t('forceThis'),
          onPick: /^<.*>$/.test(one.token) ? undefined : () => insert(one.token),
        }))}
      />
    </>
  );
}

function Picture({ data, of }: { data: Translation; of: Model }) {
  const { h } = shown(data);
  const weights = attention(data);
  const tokens = h.steps.map((step) => step.token);
  const names = { rows: tokens.map(word), columns: data.source_tokens.map(word) };
  const gold = data.gold && shown(data).rank === 0 ? data.gold : undefined;
  const heat: HeatProps = {
    values: weights,
    ...names,
    scale: { low: 0, high: 1 },
    label: t('crossMap'),
    boxes: gold?.links,
    litRow: s.word.value,
    linked: true,
    rowName: t('written'),
    columnName: t('read'),
    onPick: (row) => (s.word.value = row),
  };
  const which = s.layer.value === 0 ? t('meanOfHeads') : t('layerHead', { layer: s.layer.value, head: Math.max(1, s.head.value) });
  const unknown = unknownAt(data);
  return (
    <>
      <Figure
        name="alignment"
        title={t('linesTitle')}
        wide
        command={data.command}
        table={() => mapTable(weights, names.rows, names.columns)}
        json={() => data}
        note={
          <>
            {which} · {t('linesFloor')} {unknown.length > 0 && <b class="second">{t('unknownWords', { words: unknownWords(data).join(', ') })}</b>}
          </>
        }
      >
        <Lines
          source={data.source_tokens}
          target={tokens}
          weights={weights}
          unknown={unknown}
          picked={s.word.value}
          onPick={(i) => (s.word.value = i)}
          sourceTitle={t('read')}
          targetTitle={`${t('written')} · ${t('barIsProbability')}`}
          probabilities={h.steps.map((step) => Math.exp(step.log_probability))}
        />
      </Figure>
      <HeadControls of={of} />
      <div class="pair">
        <Figure
          name="attention"
          title={t('crossMap')}
          svg={() => heatSvg(heat)}
          table={() => mapTable(weights, names.rows, names.columns)}
          json={() => ({ ...names, weights })}
          command={data.command}
          note={
            <>
              {which}. {gold && gold.aer !== null && rich('goldNote', { aer: num(gold.aer) })}
            </>
          }
        >
          <Heat {...heat} />
        </Figure>
        <div class="stack">
          <Figure
            name="beam"
            title={t('beamTitle', { count: data.hypotheses.length })}
            noPicture
            table={() => ({ header: ['text', 'score', 'log_probability'], rows: rows(data).map(({ h }) => [h.text, h.score, h.log_probability]) })}
            json={() => data.hypotheses}
            command={data.command}
          >
            <BeamTable data={data} />
            {verdictText(data)}
          </Figure>
          <Figure
            name="alternatives"
            title={t('alternatives')}
            noPicture
            table={() => ({
              header: ['step', 'token', 'alternative', 'probability'],
              rows: h.steps.flatMap((step, i) => step.top.map((one) => [i, step.token, one.token, one.probability])),
            })}
            json={() => h.steps}
          >
            <Alternatives data={data} />
          </Figure>
        </div>
      </div>
      {data.tree && data.tree.length > 1 && (
        <Figure name="tree" title={t('treeTitle')} wide json={() => data.tree} note={t('treeNote')}>
          <BeamTree nodes={data.tree} best={tokens} />
        </Figure>
      )}
    </>
  );
}

function HeadControls({ of }: { of: Model }) {
  const layers = of.maps?.includes('cross') ? (of.layers?.decoder ?? 0) : 0;
  if (!layers || !of.heads) return null;
  const numbers = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
  return (
    <div class="controls">
      <Choice
        label={t('attentionOf')}
        value={s.layer.value}
        options={[{ value: 0, label: t('mean') }, ...numbers(layers).map((n) => ({ value: n, label: t('layerN', { n }) }))]}
        set={(layer) => {
          s.layer.value = layer;
          if (layer && !s.head.value) s.head.value = 1;
        }}
      />
      {s.layer.value > 0 && <Choice label={t('head')} value={s.head.value} options={numbers(of.heads)} set={(head) => (s.head.value = head)} />}
    </div>
  );
}

const tries = (of: Model | null) => {
  const example = of?.examples ?? [];
  if (!of || of.gold) {
    return [
      tryThis('translate', 'tryNegation', 'tryNegationAsk', { text: 'the red cat is not sleeping .' }),
      tryThis('translate', 'tryBeam', 'tryBeamAsk', { text: 'the intelligent children do not like the red house .', beam: 8 }),
      tryThis('translate', 'tryForce', 'tryForceAsk', { text: 'the red cat is not sleeping .', force: 'le rouge chat ne dort pas .', reference: 'le chat rouge ne dort pas .', rank: -1 }),
    ];
  }
  return [
    tryThis('translate', 'tryExample', 'tryExampleAsk', { text: example[1] ?? example[0] ?? '' }),
    tryThis('translate', 'tryBeam', 'tryBeamAsk', { text: example[0] ?? '', beam: 8 }),
    tryThis('translate', 'tryHead', 'tryHeadAsk', { text: example[0] ?? '', layer: 1, head: 1 }),
  ];
};

export function Translate() {
  const { data, busy } = translation.value;
  const partial = busy && streamed.value?.view === translation.view ? streamed.value.tokens : null;
  return (
    <BenchPage
      title={t('translateTitle')}
      notice={rich('translateNotice')}
      formula={data?.hypotheses.length ? <Formula data={data} /> : undefined}
      tries={tries(model.value)}
    >
      <WithModel task="translation" id={s.model.value}>
        {(of) => (
          <>
            <div class="controls top">
              <TextField label={t('sentence')} wide value={text.value} set={(value) => preset('translate', { model: s.model.value, beam: s.beam.value, layer: s.layer.value, head: s.head.value, text: value })} />
              <ModelSelect task="translation" id={s.model} />
              <Choice label={t('beam')} value={s.beam.value} options={[1, 2, 4, 8]} set={(n) => (s.beam.value = n)} />
            </div>
            <div class="controls">
              <TextField label={t('forceLabel')} wide value={s.force.value} placeholder={data?.hypotheses[0]?.text} set={(value) => (s.force.value = value)} />
              <TextField label={t('referenceLabel')} wide value={s.reference.value} placeholder={t('referencePlaceholder')} set={(value) => (s.reference.value = value)} />
            </div>
            {partial && (
              <p class="streaming" aria-live="polite">
                {join(partial)}
                <i aria-hidden="true" />
              </p>
            )}
            <Written text={text.value}>
              <Shown of={translation} height={420}>
                {(now) => (now.hypotheses.length ? <Picture data={now} of={of} /> : null)}
              </Shown>
            </Written>
          </>
        )}
      </WithModel>
    </BenchPage>
  );
}
