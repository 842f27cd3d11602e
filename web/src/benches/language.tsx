// Language: type a text, see what comes next and what the model looked at; click a token to write it.
import { computed, signal } from '@preact/signals';
import { follow, post, Failure } from '../api';
import { chosen } from '../models';
import { fixed, num, word } from '../num';
import { settings } from '../store';
import { BenchPage, Choice, Failed, ModelSelect, Shown, Slider, TextField, tryThis, WithModel, Written } from '../ui';
import { rich, t } from '../words';
import { Bars } from '../views/bars';
import { scaleOf } from '../views/colours';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { TileMap } from '../views/tiles';
import { Frac, I, M, N, O, Row, Sub, Sum, Sup } from '../maths';

const s = settings('language', { model: '', prompt: null as string | null, temperature: 0.8, top_k: 0, top_p: 1, layer: 0, head: 0, seed: 1, view: '' });

interface Next {
  tokens: string[];
  unknown: string[];
  next: { token: string; text: string; probability: number; kept: boolean }[];
  kept: number;
  maps: { name: string; layer: number; head: number; shape: [number, number]; values?: number[][]; entropy?: number; confidence?: number }[];
  induction?: { layer: number; head: number; score: number; places: number };
  session: string;
  command?: string;
}
const causal = (model: { objective?: string }) => model.objective === 'causal';
const model = computed(() => chosen('language', s.model.value, causal));
const prompt = computed(() => s.prompt.value ?? model.value?.examples?.[0] ?? '');
const answer = follow<Next>(
  () =>
    model.value && prompt.value.trim()
      ? { path: '/next', body: { model: model.value.id, prompt: prompt.value, temperature: s.temperature.value, top_k: s.top_k.value, top_p: s.top_p.value, top: 20 } }
      : null,
  120,
);

/** A text that says the same few sentences again and again, as long as the model can read. */
const story = 'the little cat sleeps in the garden . my brother reads a good book . the children do not like the rain . she often writes to her friend . ';
const longText = (tokens: number) => story.repeat(Math.ceil(Math.min(tokens, 19_000) / story.length)).slice(0, Math.min(tokens, 19_000));

const writing = signal(false);
const failed = signal<Failure | null>(null);
async function write() {
  writing.value = true;
  failed.value = null;
  try {
    const { text } = await post<{ text: string }>('/generate', {
      model: model.peek()!.id,
      prompt: prompt.peek(),
      count: 40,
      temperature: s.temperature.peek(),
      top_k: s.top_k.peek(),
      top_p: s.top_p.peek(),
      seed: s.seed.peek(),
    });
    s.prompt.value = prompt.peek() + text;
    s.seed.value = s.seed.peek() + 1;
  } catch (problem) {
    failed.value = problem as Failure;
  }
  writing.value = false;
}

function Formula({ data }: { data: Next }) {
  const best = data.next[0];
  return (
    <>
      <M block>
        <I>p</I>
        <O>(</O>
        <I>w</I>
        <O>)</O>
        <O>=</O>
        <Frac
          over={<Sup of={<I>e</I>} to={<Row><Sub of={<I>z</I>} by={<I>w</I>} /><O>/</O><I>T</I></Row>} />}
          under={<Row><Sum over={<I>u</I>} /><Sup of={<I>e</I>} to={<Row><Sub of={<I>z</I>} by={<I>u</I>} /><O>/</O><I>T</I></Row>} /></Row>}
        />
      </M>
      <p class="numbers">
        <M>
          <I>p</I>
          <O>(</O>
          <mtext>{word(best.token)}</mtext>
          <O>)</O>
          <O>=</O>
          <N>{fixed(best.probability)}</N>
          <O>,</O>
          <I>T</I>
          <O>=</O>
          <N>{num(s.temperature.value)}</N>
        </M>
      </p>
      <p class="soft">{rich('keptTokens', { kept: data.kept })}</p>
    </>
  );
}

function Picture({ data }: { data: Next }) {
  // Without a choice, the head that copies what followed, if there is one; else the first.
  const wanted = s.layer.value > 0 ? { layer: s.layer.value, head: Math.max(1, s.head.value) } : (data.induction ?? { layer: 1, head: 1 });
  const map = data.maps.find((one) => one.layer === wanted.layer && one.head === wanted.head) ?? data.maps[0];
  const words = data.tokens.map(word);
  const heat: HeatProps | null = map?.values
    ? { values: map.values, rows: words.slice(0, map.values.length), columns: words.slice(0, map.values[0].length), scale: { ...scaleOf(map.values), high: 1 }, label: t('readMap', { layer: map.layer, head: map.head }), maxCell: 26, linked: true, rowName: t('queryRow'), columnName: t('keyColumn') }
    : null;
  const number = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
  const layers = Math.max(...data.maps.map((one) => one.layer), 0);
  const heads = Math.max(...data.maps.map((one) => one.head), 0);
  const pick = map && (
    <div class="controls">
      <Choice label={t('attentionOf')} value={map.layer} options={number(layers).map((n) => ({ value: n, label: t('layerN', { n }) }))} set={(layer) => ((s.layer.value = layer), (s.head.value = s.head.value || 1))} />
      <Choice label={t('head')} value={map.head} options={number(heads)} set={(head) => ((s.layer.value = map.layer), (s.head.value = head))} />
    </div>
  );
  const next = (
    <Figure name="next" title={t('nextTitle')} noPicture table={() => ({ header: ['token', 'probability', 'kept'], rows: data.next.map((n) => [n.token, n.probability, n.kept ? 1 : 0]) })} json={() => data.next} command={data.command} note={t('nextNote')}>
      <Bars
        label={t('nextTitle')}
        bars={data.next.map((n) => ({ label: word(n.token), value: n.probability, cut: !n.kept, title: n.kept ? undefined : t('cutToken'), onPick: () => (s.prompt.value = prompt.peek() + n.text) }))}
        high={1}
      />
    </Figure>
  );
  if (map && !heat) {
    return (
      <>
        {pick}
        <TileMap session={data.session} name={map.name} layer={map.layer} head={map.head} rows={words} columns={words} title={t('readMap', { layer: map.layer, head: map.head })} view={s.view} command={data.command} />
        {next}
      </>
    );
  }
  return (
    <div class="pair">
      {next}
      {heat && (
        <Figure name="read" title={heat.label} svg={() => heatSvg(heat)} table={() => ({ header: ['', ...heat.columns], rows: heat.values.map((row, i) => [heat.rows[i], ...row]) })} json={() => map} note={data.induction && data.induction.score >= 0.4 ? rich('inductionNote', { layer: data.induction.layer, head: data.induction.head, score: num(data.induction.score) }) : data.induction ? t('inductionWeak', { layer: data.induction.layer, head: data.induction.head, score: num(data.induction.score) }) : t('inductionNone')}>
          {pick}
          <Heat {...heat} />
        </Figure>
      )}
    </div>
  );
}

export function LanguageBench() {
  const { data } = answer.value;
  const examples = model.value?.examples ?? [];
  return (
    <BenchPage
      title={t('languageTitle')}
      notice={rich('languageNotice')}
      formula={data ? <Formula data={data} /> : undefined}
      tries={[
        tryThis('language', 'tryCold', 'tryColdAsk', { prompt: s.prompt.value, temperature: 0.1 }),
        (model.value?.longest ?? 0) >= 1000
          ? tryThis('language', 'longTextTry', 'longTextTryAsk', { prompt: longText(model.value!.longest!) })
          : tryThis('language', 'tryHot', 'tryHotAsk', { prompt: s.prompt.value, temperature: 3 }),
        tryThis('language', 'tryRepeat', 'tryRepeatAsk', { prompt: `${(examples[0] ?? 'the cat ').trim()} ${(examples[0] ?? 'the cat ').trim()} ` }),
      ]}
    >
      <WithModel task="language" id={s.model.value} fits={causal}>
        {() => (
          <>
            <div class="controls top">
              <TextField label={t('prompt')} wide lines={2} value={prompt.value} set={(value) => (s.prompt.value = value)} />
              <ModelSelect task="language" id={s.model} fits={causal} />
              <button type="button" class="plain strong" disabled={writing.value || !prompt.value} onClick={() => void write()}>
                {writing.value ? t('writingNow') : t('writeOn')}
              </button>
              <button type="button" class="plain" onClick={() => (s.prompt.value = null)}>
                {t('startAgain')}
              </button>
            </div>
            <div class="controls">
              <Slider label={t('temperature')} value={Math.max(0.05, s.temperature.value)} low={0.05} high={5} log set={(value) => (s.temperature.value = value)} />
              <Choice label="top-k" value={s.top_k.value} options={[{ value: 0, label: t('all') }, 1, 3, 10, 40]} set={(value) => (s.top_k.value = value)} />
              <Slider label="top-p" value={s.top_p.value} low={0.05} high={1} step={0.01} show={fixed(s.top_p.value, 2)} set={(value) => (s.top_p.value = value)} />
            </div>
            {failed.value && <Failed failure={failed.value} />}
            {data && data.unknown.length > 0 && <p class="soft">{t('unknownWords', { words: data.unknown.join(' ') })}</p>}
            <Written text={prompt.value}>
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
