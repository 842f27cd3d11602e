// Numbers as people read them: three significant digits, a true minus sign, tabular.
const minus = (text: string) => text.replace('-', '−');

/** Three significant digits. */
export function num(x: number | null | undefined, digits = 3): string {
  if (x === null || x === undefined) return '–';
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 'NaN' : x > 0 ? '∞' : '−∞';
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-4) return minus(x.toExponential(digits - 1)).replace('e+', 'e').replace('e-', 'e−');
  if (size >= 1000) return minus(x.toFixed(0));
  return minus(x.toPrecision(digits));
}

/** A fixed number of decimals, for columns of weights and log-probabilities. */
export const fixed = (x: number | null | undefined, decimals = 3) =>
  x === null || x === undefined || !Number.isFinite(x) ? num(x) : minus(x.toFixed(decimals)).replace(/^−(0\.?0*)$/, '$1');

export const full = (x: number) => minus(String(x));
export const count = (n: number) => n.toLocaleString('en-US');

/** A token as it is shown: subword marks become visible spaces only where nothing else is left. */
export function word(token: string): string {
  const bare = token.replace(/^▁/, '');
  if (bare === '') return '␣';
  return bare.replace(/^<(.*)>$/, '‹$1›').replaceAll('\n', '⏎').replace(/^ +$/, '␣');
}
/** Tokens as a text again. */
export function join(tokens: string[]): string {
  const plain = tokens.filter((token) => !/^<.*>$/.test(token));
  return plain.some((token) => token.startsWith('▁')) ? plain.join('').replaceAll('▁', ' ').trim() : plain.join(' ');
}
