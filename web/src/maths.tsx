// Formulas as MathML, written piece by piece: letters, indices, fractions, sums.
import type { ComponentChildren } from 'preact';

type Part = { children?: ComponentChildren };
export const M = ({ children, block }: Part & { block?: boolean }) => (
  <math display={block ? 'block' : 'inline'}>
    <mrow>{children}</mrow>
  </math>
);
export const I = ({ children }: Part) => <mi>{children}</mi>;
// What is in brackets here is one line high; some fonts make stretched ones twice as tall. A text, since Preact leaves out
// attributes that are false.
const no = 'false' as unknown as boolean;
export const O = ({ children }: Part) => <mo stretchy={/^[()|‖]$/.test(String(children)) ? no : undefined}>{children}</mo>;
export const N = ({ children }: Part) => <mn class="now">{children}</mn>;
export const Text = ({ children }: Part) => <mtext>{children}</mtext>;
export const Row = ({ children }: Part) => <mrow>{children}</mrow>;
export const Sub = ({ of, by }: { of: ComponentChildren; by: ComponentChildren }) => (
  <msub>
    <mrow>{of}</mrow>
    <mrow>{by}</mrow>
  </msub>
);
export const Sup = ({ of, to }: { of: ComponentChildren; to: ComponentChildren }) => (
  <msup>
    <mrow>{of}</mrow>
    <mrow>{to}</mrow>
  </msup>
);
export const Frac = ({ over, under }: { over: ComponentChildren; under: ComponentChildren }) => (
  <mfrac>
    <mrow>{over}</mrow>
    <mrow>{under}</mrow>
  </mfrac>
);
export const Root = ({ children }: Part) => <msqrt>{children}</msqrt>;
export const Sum = ({ over }: { over: ComponentChildren }) => (
  <munder>
    <mo>∑</mo>
    <mrow>{over}</mrow>
  </munder>
);
/** x with index i. */
export const Xi = ({ x, i = 'i' }: { x: string; i?: string }) => (
  <msub>
    <mi>{x}</mi>
    <mi>{i}</mi>
  </msub>
);
