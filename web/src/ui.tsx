// The parts that every bench is made of: its page, its controls and its states.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ReadonlySignal, Signal } from '@preact/signals';
import { recorded } from './api';
import type { Answer, Failure } from './api';
import { engineState, hasEngine } from './engine';
import { background, chosen, loadModels, Model, models, modelsFailed, ofTask, training } from './models';
import { bench, preset } from './store';
import { Key, rich, t } from './words';
import { num } from './num';


export interface Try {
  title: string;
  question: string;
  set: () => void;
}

/** A bench: what to notice, the formula and three things to try beside the picture. */
export function BenchPage(props: {
  title: string;
  notice: ComponentChildren;
  formula?: ComponentChildren;
  tries: Try[];
  children: ComponentChildren;
}) {
  return (
    <main id="main" tabIndex={-1}>
      <aside>
        <h1>{props.title}</h1>
        <p class="notice">{props.notice}</p>
        {props.formula && <div class="formula">{props.formula}</div>}
        <div class="tries" role="group" aria-label={t('try')}>
          <h2>{t('try')}</h2>
          {props.tries.map((one) => (
            <button type="button" onClick={one.set}>
              {one.title}
              <small>{one.question}</small>
            </button>
          ))}
        </div>
      </aside>
      <div class="work">{props.children}</div>
    </main>
  );
}

export const tryThis = (name: string, title: Key, question: Key, values: Record<string, any>): Try => ({
  title: t(title),
  question: t(question),
  set: () => preset(name, values),
});

/** One of several, as a row of buttons; arrow keys move within it. */
export function Choice<T extends string | number>(props: {
  label: string;
  value: T;
  options: readonly (T | { value: T; label: string })[];
  set: (value: T) => void;
  disabled?: boolean;
}) {
  const options = props.options.map((one) => (typeof one === 'object' ? one : { value: one, label: String(one) }));
  const at = options.findIndex((one) => one.value === props.value);
  const row = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = (at + by + options.length) % options.length;
    props.set(options[next].value);
    (row.current?.children[next] as HTMLElement).focus();
  };
  return (
    <div class="control">
      <span class="label">{props.label}</span>
      <div class="choice" role="radiogroup" aria-label={props.label} ref={row} onKeyDown={move}>
        {options.map((one, index) => (
          <button
            type="button"
            role="radio"
            aria-checked={one.value === props.value}
            disabled={props.disabled}
            tabIndex={index === Math.max(at, 0) ? 0 : -1}
            onClick={() => props.set(one.value)}
          >
            {one.label}
          </button>
        ))}
      </div>
    </div>
  );
}

/** A slider over numbers, evenly or by factors (`log`). */
export function Slider(props: {
  label: string;
  value: number;
  low: number;
  high: number;
  step?: number;
  log?: boolean;
  show?: ComponentChildren;
  set: (value: number) => void;
  disabled?: boolean;
}) {
  const to = (x: number) => (props.log ? Math.log(x) : x);
  const from = (x: number) => (props.log ? Number(Math.exp(x).toPrecision(4)) : x);
  const step = props.log ? (to(props.high) - to(props.low)) / 200 : (props.step ?? 0.01);
  return (
    <label class="control slider">
      <span class="label">
        {props.label} <output>{props.show ?? num(props.value)}</output>
      </span>
      <input
        type="range"
        min={to(props.low)}
        max={to(props.high)}
        step={step}
        value={to(props.value)}
        disabled={props.disabled}
        aria-valuetext={num(props.value)}
        onInput={(event) => props.set(from(Number(event.currentTarget.value)))}
      />
    </label>
  );
}

export function Select<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: string }[];
  set: (value: T) => void;
}) {
  return (
    <label class="control">
      <span class="label">{props.label}</span>
      <select value={props.value} onChange={(event) => props.set(event.currentTarget.value as T)}>
        {props.options.map((one) => (
          <option value={one.value} selected={one.value === props.value}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Check(props: { label: string; value: boolean; set: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={props.value} onChange={(event) => props.set(event.currentTarget.checked)} />
      {props.label}
    </label>
  );
}

/** A line of text; what is typed counts at once, or on Enter where a change is expensive. */
export function TextField(props: {
  label: string;
  value: string;
  placeholder?: string;
  set: (value: string) => void;
  wide?: boolean;
  lines?: number; // more than one: a field for longer texts
}) {
  if (props.lines) {
    return (
      <label class={props.wide ? 'control wide' : 'control'}>
        <span class="label">{props.label}</span>
        <textarea rows={props.lines} spellcheck={false} value={props.value} placeholder={props.placeholder} onInput={(event) => props.set(event.currentTarget.value)} />
      </label>
    );
  }
  return (
    <label class={props.wide ? 'control wide' : 'control'}>
      <span class="label">{props.label}</span>
      <input
        type="text"
        spellcheck={false}
        autocomplete="off"
        value={props.value}
        placeholder={props.placeholder}
        onInput={(event) => props.set(event.currentTarget.value)}
      />
    </label>
  );
}

/** The width of an element, as it changes. */
export function useWidth<E extends HTMLElement>(): [preact.RefObject<E>, number] {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!ref.current) return;
    setWidth(Math.floor(ref.current.clientWidth));
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return [ref, width];
}

export const failureText = (failure: Failure): [string, string | undefined] => {
  if (failure.error === 'offline') return [t('offline'), t('offlineHint')];
  if (failure.error === 'recorded') return [t('notRecorded'), t('notRecordedHint')];
  if (failure.error === 'simd') return [t('noSimd'), recorded ? t('recordedRemain') : undefined];
  if (failure.error === 'engine') return [t('engineFailed'), undefined];
  if (failure.status === 413) return [t('tooLarge'), failure.error];
  return [failure.error, failure.hint];
};

export function Failed({ failure }: { failure: Failure }) {
  const [line, hint] = failureText(failure);
  return (
    <div class="state failed" role="alert">
      <b>{line}</b>
      {hint && <span>{hint}</span>}
    </div>
  );
}

/** An answer's picture, or what to show while there is none. An old answer stays visible, dimmed, until the new one. */
export function Shown<T>(props: {
  of: ReadonlySignal<Answer<T>>;
  height?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, busy, failure } = props.of.value;
  if (failure && !busy) {
    return (
      <>
        <Failed failure={failure} />
        {data && <div class="stale">{props.children(data)}</div>}
      </>
    );
  }
  if (!data) return <Waiting height={props.height} />;
  return (
    <div class="answer" aria-busy={busy}>
      {props.children(data)}
    </div>
  );
}

/** What a text is answered with, once there is one. */
export const Written = ({ text, children }: { text: string; children: ComponentChildren }) => <>{text.trim() ? children : <Empty>{t('nothingWritten')}</Empty>}</>;

export const Waiting = ({ height = 220, line }: { height?: number; line?: string }) => (
  <div class="state waiting" style={{ minHeight: `${height}px` }} role="status">
    <i aria-hidden="true" />
    {line ?? t(engineState.value === 'loading' ? 'engineLoading' : 'loading')}
  </div>
);

export const Empty = ({ children }: { children: ComponentChildren }) => <div class="state empty">{children}</div>;

/** What became of a run that is not trained to the end, and of the training that the server started. */
export function RunState({ model }: { model: Model }) {
  if (model.state === 'failed') {
    return (
      <p class="runstate" role="status">
        <b>{t('runFailed', { name: model.name })}</b> {model.error}
      </p>
    );
  }
  if (model.state !== 'interrupted') return null;
  if (hasEngine) return <p class="runstate" role="status"><b>{t('runInPage', { name: model.name, epochs: model.epochs ?? 0, all: model.of_epochs ?? 0 })}</b></p>;
  return (
    <p class="runstate" role="status">
      <b>{t('runInterrupted', { name: model.name, epochs: model.epochs ?? 0, all: model.of_epochs ?? 0 })}</b> {t(model.usable ? 'fromCheckpoint' : 'noCheckpoint')} {model.resume && <code>./{model.resume}</code>}
    </p>
  );
}
export function BackgroundFailed() {
  const failed = background.value?.state === 'failed' && !ofTask('translation').some((one) => one.state === 'ready');
  return failed ? (
    <p class="runstate" role="alert">
      <b>{background.value!.error}</b> {t('backgroundFailed')} <code>{trainCommand.translation}</code>
    </p>
  ) : null;
}

/** The bench when a model is there; before that, how far its training is and what to do meanwhile. */
export function WithModel(props: {
  task: Model['task'];
  id: string;
  fits?: (model: Model) => boolean;
  children: (model: Model) => ComponentChildren;
}) {
  if (models.value === null) {
    return modelsFailed.value ? <Failed failure={modelsFailed.value} /> : <Waiting height={360} />;
  }
  const model = chosen(props.task, props.id, props.fits);
  if (model) {
    return (
      <>
        {props.task === 'translation' && <BackgroundFailed />}
        <RunState model={model} />
        {props.children(model)}
      </>
    );
  }
  const rising = ofTask(props.task).find((one) => one.state === 'training');
  if (rising) {
    const now = training.value[rising.id];
    const done = now?.done ?? rising.done ?? 0;
    return (
      <div class="state training">
        <b>{t('modelTraining', { name: rising.name })}</b>
        <progress max={1} value={done} aria-label={t('progress')} />
        <span class="num">{now?.line ?? `${Math.round(done * 100)} %`}</span>
        <span>{rich('meanwhile')}</span>
        <span>
          {(['cues', 'regression', 'positions'] as const).map((name) => (
            <button type="button" class="plain" onClick={() => (bench.value = name)}>
              {t(`bench_${name}`)}
            </button>
          ))}
        </span>
      </div>
    );
  }
  const ended = props.task === 'translation' && background.value?.state === 'failed' ? background.value.error : undefined;
  const stopped = ofTask(props.task).filter((one) => one.state === 'interrupted');
  // A folder that cannot be read may be of any task.
  const failed = models.value.filter((one) => one.state === 'failed' && (!one.task || one.task === props.task));
  return (
    <div class="state empty">
      <b>{t(`noModel_${props.task}`)}</b>
      {ended && <span role="alert">{ended}</span>}
      {[...stopped, ...failed].map((one) => (
        <RunState key={one.id} model={one} />
      ))}
      {hasEngine ? (
        <>
          <span>{t(props.task === 'translation' ? 'bringOrTrain' : 'bringOne')}</span>
          {props.task === 'translation' && (
            <span>
              <button type="button" class="plain" onClick={() => (bench.value = 'training')}>
                {t('trainHere')}
              </button>
            </span>
          )}
        </>
      ) : (
        <>
          <span>{t('makeOne')}</span>
          <code>{trainCommand[props.task]}</code>
          <span>
            <button type="button" class="plain" onClick={() => void loadModels()}>
              {t('lookAgain')}
            </button>
          </span>
        </>
      )}
    </div>
  );
}
const trainCommand = {
  translation: './qkv train --preset transformer',
  language: './qkv train --preset lm',
  vision: './qkv train --preset vit',
};

export const ModelSelect = (props: { task: Model['task']; id: Signal<string>; fits?: (model: Model) => boolean; label?: string; now?: Model | null }) => {
  const all = ofTask(props.task).filter((model) => (model.usable ?? model.state === 'ready') && (!props.fits || props.fits(model)));
  const model = props.now ?? chosen(props.task, props.id.value, props.fits);
  return (
    <Select
      label={props.label ?? t('model')}
      value={model?.id ?? ''}
      options={all.map((one) => ({ value: one.id, label: one.state === 'ready' ? one.name : `${one.name} (${t(one.state === 'training' ? 'stateTraining' : 'stateInterrupted')})` }))}
      set={(id) => (props.id.value = all.find((one) => one.id === id)?.name ?? id)}
    />
  );
};
