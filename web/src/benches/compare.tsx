// Compare: two models, two sentences or two heads side by side, and their difference.
import { computed } from '@preact/signals';
import { follow } from '../api';
import { chosen, isNamed, Model } from '../models';
import { num, word } from '../num';
import { hover, point, settings } from '../store';
import { BenchPage, Choice, ModelSelect, Shown, TextField, tryThis, WithModel, Written } from '../ui';
import { Key, rich, t } from '../words';
import { Bars } from '../views/bars';
import { scaleOf } from '../views/colours';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { I, M, N, O, Sub } from '../maths';

const s = settings('compare', { model: '', second: '', text: null as string | null, other: null as string | null, name: 'cross', layer: 1, head: 1, layer2: 1, head2: 2 });

interface Side {
  source_tokens: string[];
  input_tokens: string[];
  output_tokens: string[];
  command?: string;
  values: number[][];
}
interface Compared {
  left: Side;
  right: Side;
  difference: number[][] | null;
  largest: number | null;
}
// Where nothing is chosen, a model with several heads: two of them differ.
const several = (name: string) => chosen('translation', name, (one) => isNamed(one, name) || (one.heads ?? 0) > 1) ?? chosen('translation', name);
const left = computed(() => several(s.model.value));
const right = computed(() => several(s.second.value || s.model.value));
const text = computed(() => s.text.value ?? left.value?.examples?.[0] ?? '');
const other = computed(() => s.other.value ?? text.value);
const kinds = (model: Model | null) => model?.maps ?? [];
const kind = computed(() => (kinds(left.value).includes(s.name.value) ? s.name.value : (kinds(left.value)[0] ?? 'cross')));
const layersOf = (model: Model | null) => model?.layers?.[kind.value === 'encoder' ? 'encoder' : 'decoder'] ?? 1;
// A model with fewer layers or heads than the one before shows its last ones.
const leftAt = computed(() => ({ layer: Math.min(s.layer.value, layersOf(left.value)), head: Math.min(s.head.value, left.value?.heads ?? 1) }));
const rightAt = computed(() => ({ layer: Math.min(s.layer2.value, layersOf(right.value)), head: Math.min(s.head2.value, right.value?.heads ?? 1) }));
const answer = follow<Compared>(
  () =>
    left.value && right.value && text.value.trim() && other.value.trim()
      ? {
          path: '/compare',
          body: {
            left: { model: left.value.id, text: text.value, ...leftAt.value },
            right: { model: right.value.id, text: other.value, ...rightAt.value },
            name: kind.value,
          },
        }
      : null,
  200,
);

const names = (side: Side): { rows: string[]; columns: string[] } => {
  if (kind.value === 'encoder') return { rows: side.source_tokens.map(word), columns: side.source_tokens.map(word) };
  if (kind.value === 'decoder') return { rows: side.input_tokens.map(word), columns: side.input_tokens.map(word) };
  return { rows: side.output_tokens.map(word), columns: side.source_tokens.map(word) };
};
const heatOf = (side: Side, values: number[][], label: string, signed = false): HeatProps => ({
  values,
  ...names(side),
  scale: signed ? scaleOf(values, 'signed') : { low: 0, high: 1 },
  label,
  linked: true,
  maxCell: 34,
  rowName: t('queryRow'),
  columnName: t('keyColumn'),
});

function Map({ name, heat, note, command }: { name: string; heat: HeatProps; note?: string; command?: string }) {
  return (
    <Figure name={name} title={heat.label} svg={() => heatSvg(heat)} table={() => ({ header: ['', ...heat.columns], rows: heat.values.map((row, i) => [heat.rows[i], ...row]) })} json={() => heat.values} note={note} command={command}>
      <Heat {...heat} />
    </Figure>
  );
}

/** Where the two differ most, in words. */
function Largest({ data }: { data: Compared }) {
  const all = data.difference!.flatMap((row, i) => row.map((value, j) => ({ i, j, value }))).sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 10);
  const { rows, columns } = names(data.left);
  return (
    <Figure name="largest" title={t('largestTitle')} noPicture table={() => ({ header: ['row', 'column', 'difference'], rows: all.map((one) => [rows[one.i], columns[one.j], one.value]) })} json={() => all}>
      <Bars label={t('largestTitle')} bars={all.map(({ i, j, value }) => ({ label: `${rows[i]} → ${columns[j]}`, value, on: hover.value?.row === i && hover.value?.column === j, onPoint: (on) => (on ? point(i, j) : point()) }))} />
    </Figure>
  );
}

function Picture({ data }: { data: Compared }) {
  return (
    <>
      <div class="pair">
        <Map name="left" heat={heatOf(data.left, data.left.values, t('layerHead', leftAt.value))} command={data.left.command} />
        <Map name="right" heat={heatOf(data.right, data.right.values, t('layerHead', rightAt.value))} command={data.right.command} />
      </div>
      {data.difference ? (
        <div class="pair">
          <Map name="difference" heat={heatOf(data.left, data.difference, t('differenceTitle'), true)} note={t('differenceNote', { largest: num(data.largest) })} />
          <Largest data={data} />
        </div>
      ) : (
        <div class="state empty">{t('differentShapes')}</div>
      )}
    </>
  );
}

const numbers = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
function HeadPick(props: { of: Model | null; layer: number; head: number; set: (layer: number, head: number) => void }) {
  return (
    <>
      <Choice label={t('attentionOf')} value={props.layer} options={numbers(layersOf(props.of)).map((n) => ({ value: n, label: t('layerN', { n }) }))} set={(n) => props.set(n, props.head)} />
      <Choice label={t('head')} value={props.head} options={numbers(props.of?.heads ?? 1)} set={(n) => props.set(props.layer, n)} />
    </>
  );
}

export function Compare() {
  const { data } = answer.value;
  return (
    <BenchPage
      title={t('compareTitle')}
      notice={rich('compareNotice')}
      formula={
        data?.largest != null && (
          <M>
            <I>max</I>
            <O>|</O>
            <Sub of={<I>α</I>} by={<mn>1</mn>} />
            <O>−</O>
            <Sub of={<I>α</I>} by={<mn>2</mn>} />
            <O>|</O>
            <O>=</O>
            <N>{num(data.largest)}</N>
          </M>
        )
      }
      tries={[
        tryThis('compare', 'tryTwoHeads', 'tryTwoHeadsAsk', { text: s.text.value, name: s.name.value, head: 1, head2: 2 }),
        tryThis('compare', 'tryTwoLayers', 'tryTwoLayersAsk', { text: s.text.value, name: s.name.value, layer: 1, layer2: 2, head: 1, head2: 1 }),
        tryThis('compare', 'tryTwoWords', 'tryTwoWordsAsk', { text: 'the red cat is sleeping .', other: 'the red dog is sleeping .', head2: 1 }),
      ]}
    >
      <WithModel task="translation" id={s.model.value} fits={(one) => (one.heads ?? 0) > 0}>
        {() => (
          <>
            <div class="controls top">
              <Choice label={t('part')} value={kind.value} options={kinds(left.value).map((value) => ({ value, label: t(`part_${value}` as Key) }))} set={(value) => (s.name.value = value)} />
            </div>
            <div class="pair">
              <div class="controls">
                <ModelSelect task="translation" id={s.model} now={left.value} />
                <TextField label={t('sentence')} wide value={text.value} set={(value) => (s.text.value = value)} />
                <HeadPick of={left.value} {...leftAt.value} set={(layer, head) => ((s.layer.value = layer), (s.head.value = head))} />
              </div>
              <div class="controls">
                <ModelSelect task="translation" id={s.second} now={right.value} />
                <TextField label={t('sentence')} wide value={other.value} set={(value) => (s.other.value = value)} />
                <HeadPick of={right.value} {...rightAt.value} set={(layer, head) => ((s.layer2.value = layer), (s.head2.value = head))} />
              </div>
            </div>
            <Written text={text.value && other.value}>
              <Shown of={answer} height={380}>
                {(now) => <Picture data={now} />}
              </Shown>
            </Written>
          </>
        )}
      </WithModel>
    </BenchPage>
  );
}
