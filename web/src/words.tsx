// Sentences in two languages: `t` gives text, `rich` the same with **bold** and `code` as elements.
import type { ComponentChildren } from 'preact';
import { lang } from './store';
import { en } from './words/en';
import { zh } from './words/zh';

export type Key = keyof typeof en;
type Values = Record<string, string | number>;

export function t(key: Key, values?: Values): string {
  const text: string = (lang.value === 'zh' ? zh : en)[key];
  return values ? text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all)) : text;
}

export function rich(key: Key, values?: Values): ComponentChildren {
  return t(key, values)
    .split(/(\*\*.+?\*\*|`.+?`)/)
    .map((part) =>
      part.startsWith('**') ? <b>{part.slice(2, -2)}</b> : part.startsWith('`') ? <code>{part.slice(1, -1)}</code> : part,
    );
}
