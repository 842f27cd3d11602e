// The one store: which bench, what is set in it, what is pointed at, and the address that restores all of it.
import { batch, effect, signal, Signal } from '@preact/signals';

export type Lang = 'en' | 'zh';
export type Theme = 'auto' | 'light' | 'dark';
export const lang = signal<Lang>(navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en');
export const theme = signal<Theme>('auto');
export const ramp = signal<'viridis' | 'reds'>('viridis');
export const bench = signal('translate');

/** What the pointer or the keyboard is on, in every view at once: a row and a column of the bench's map. */
export const hover = signal<{ row?: number; column?: number } | null>(null);
export const point = (row?: number, column?: number) => {
  const now = hover.value;
  if (now?.row === row && now?.column === column) return;
  hover.value = row === undefined && column === undefined ? null : { row, column };
};

type Value = string | number | boolean | object | null;
type Fields = Record<string, Value>;
type State<T extends Fields> = { [K in keyof T]: Signal<T[K]> };
type Fits = (value: unknown) => boolean;
interface Bench {
  defaults: Fields;
  fits: Record<string, Fits | undefined>;
  fields: Record<string, Signal<Value>>;
}
const benches = new Map<string, Bench>();

type Wide<T> = T extends boolean ? boolean : T extends number ? number : T extends string ? string : T;

let latest = '';
/** The bench whose settings were made last: a module makes them first, and what follows belongs to the same bench. */
export const owner = () => latest;

/**
 * The settings of a bench, one signal each. Those that differ from their defaults are in the address. `fits` says what a
 * list or an object from an address must look like; what is absent at first and has no `fits` is a text.
 */
export function settings<T extends Fields>(name: string, defaults: T, fits: { [K in keyof T]?: Fits } = {}): State<{ [K in keyof T]: Wide<T[K]> }> {
  const fields: Record<string, Signal<Value>> = {};
  for (const key of Object.keys(defaults)) fields[key] = signal<Value>(defaults[key]);
  benches.set(name, { defaults, fields, fits });
  latest = name;
  return fields as State<{ [K in keyof T]: Wide<T[K]> }>;
}

/** Sets several settings of a bench at once and returns the others to their defaults. */
export function preset(name: string, values: Fields) {
  const { defaults, fields } = benches.get(name)!;
  batch(() => {
    for (const key of Object.keys(fields)) {
      const wanted = key in values ? values[key] : key === 'model' ? fields[key].value : defaults[key];
      if (JSON.stringify(fields[key].peek()) !== JSON.stringify(wanted)) fields[key].value = wanted;
    }
  });
}

const write = (value: Value) => (typeof value === 'string' ? value : JSON.stringify(value));
function read(text: string, like: Value, fits?: Fits): Value {
  if (typeof like === 'string' || (like === null && !fits)) return text;
  try {
    const value = JSON.parse(text);
    return (fits ? fits(value) : typeof value === typeof like && (typeof value !== 'number' || Number.isFinite(value))) ? value : like;
  } catch {
    return like;
  }
}

const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
/** A list of rows of equally many numbers. */
export const isMatrix = (value: unknown, columns?: number): value is number[][] =>
  Array.isArray(value) && value.length > 0 && value.every((row) => Array.isArray(row) && row.length > 0 && row.length === (columns ?? value[0].length) && row.every(isNumber));
export const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

export function address(): string {
  const query = new URLSearchParams();
  const here = benches.get(bench.value);
  for (const [key, field] of Object.entries(here?.fields ?? {})) {
    const text = write(field.value);
    if (text !== write(here!.defaults[key])) query.set(key, text);
  }
  query.set('lang', lang.value);
  if (theme.value !== 'auto') query.set('theme', theme.value);
  if (ramp.value !== 'viridis') query.set('colours', ramp.value);
  return `#${bench.value}?${query}`;
}

/** Marks the addresses that the page itself has written: Back and Forward lead to them, a link never does. */
const ours = { qkv: true };
let shown = ''; // the bench of the present address

function restore(everything: boolean) {
  const [name, rest] = location.hash.slice(1).split(/\?(.*)/s);
  const query = new URLSearchParams(rest ?? '');
  batch(() => {
    const there = benches.get(name);
    if (there) {
      bench.value = shown = name;
      for (const [key, field] of Object.entries(there.fields)) {
        const text = query.get(key);
        field.value = text === null ? there.defaults[key] : read(text, there.defaults[key], there.fits[key]);
      }
    }
    if (!everything) return; // Back leads to a bench, and not to an earlier language or theme
    const wanted = query.get('lang');
    if (wanted === 'en' || wanted === 'zh') lang.value = wanted;
    const look = query.get('theme');
    theme.value = look === 'light' || look === 'dark' ? look : 'auto';
    ramp.value = query.get('colours') === 'reds' ? 'reds' : 'viridis';
  });
}

/** Reads the address once and keeps it up to date from then on. */
export function start() {
  if (location.hash.length > 1) restore(true);
  shown = bench.peek();
  history.replaceState(ours, '', location.href);
  let timer = 0;
  effect(() => {
    const now = address();
    if (now === location.hash) return;
    if (bench.peek() !== shown) {
      shown = bench.peek();
      clearTimeout(timer);
      history.pushState(ours, '', now); // a bench is a step of the back button; a slider is not
      return;
    }
    // Browsers limit how often the address may change; a dragged point changes it on every frame.
    clearTimeout(timer);
    timer = window.setTimeout(() => history.replaceState(ours, '', now), 120);
  });
  addEventListener('hashchange', () => {
    restore(!history.state?.qkv);
    history.replaceState(ours, '', location.href);
  });
  effect(() => {
    document.documentElement.lang = lang.value === 'zh' ? 'zh-CN' : 'en';
    if (theme.value === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
  });
}

const darkness = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(darkness.matches);
darkness.addEventListener('change', () => (systemDark.value = darkness.matches));
export const isDark = () => (theme.value === 'auto' ? systemDark.value : theme.value === 'dark');
export const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
