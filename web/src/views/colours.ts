// Colour scales: one sequential map for weights, one diverging map for differences, both safe for colour-blind readers.
import { interpolatePuOr, interpolateReds, interpolateViridis } from 'd3-scale-chromatic';
import { ramp } from '../store';

const table = (f: (t: number) => string) => {
  const bytes = new Uint8Array(256 * 3);
  const canvas = document.createElement('canvas').getContext('2d')!;
  for (let i = 0; i < 256; ++i) {
    canvas.fillStyle = f(i / 255);
    const hex = parseInt((canvas.fillStyle as string).slice(1), 16);
    bytes.set([hex >> 16, (hex >> 8) & 255, hex & 255], i * 3);
  }
  return bytes;
};
const tables: Record<string, Uint8Array> = {};
const functions = { viridis: interpolateViridis, reds: interpolateReds, diverging: (x: number) => interpolatePuOr(1 - x) };

export type Scale = { low: number; high: number; diverging?: boolean };
const name = (scale: Scale): keyof typeof functions => (scale.diverging ? 'diverging' : ramp.value);
export const bytesOf = (scale: Scale) => (tables[name(scale)] ??= table(functions[name(scale)]));

export const level = (x: number, { low, high }: Scale) =>
  Math.max(0, Math.min(255, Math.round((255 * (x - low)) / (high - low || 1)))) || 0;

export function colour(x: number, scale: Scale): string {
  const bytes = bytesOf(scale);
  const at = 3 * level(x, scale);
  return `rgb(${bytes[at]},${bytes[at + 1]},${bytes[at + 2]})`;
}

/** Black or white, whichever can be read on that colour. */
export function inkOn(x: number, scale: Scale): string {
  const bytes = bytesOf(scale);
  const at = 3 * level(x, scale);
  return 0.299 * bytes[at] + 0.587 * bytes[at + 1] + 0.114 * bytes[at + 2] > 140 ? '#111' : '#fff';
}

/** Symmetric around zero for differences and signed numbers, from zero for weights. */
export function scaleOf(values: number[][], kind: 'weights' | 'signed' = 'weights'): Scale {
  let high = 0;
  for (const row of values) for (const x of row) if (Number.isFinite(x)) high = Math.max(high, Math.abs(x));
  return kind === 'signed' ? { low: -(high || 1), high: high || 1, diverging: true } : { low: 0, high: high || 1 };
}
