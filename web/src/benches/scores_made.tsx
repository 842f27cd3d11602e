// The numbers that made a cell: the sum, the factor, the mask or the softmax behind it, term by term.
import type { ComponentChildren } from 'preact';
import { num } from '../num';
import { rich, t } from '../words';
import { Place, short, value } from '../views/matrix';
import { Frac, I, M, N, O, Row, Sub, Sum, Sup } from '../maths';
import type { Attended } from './scores';

type Matrix = number[][];
const most = 4; // terms of a sum that are written out

const bracket = (x: number) => (x < 0 ? `(${short(x)})` : short(x));
/** a1 · b1 + a2 · b2 + ... = sum */
function Products({ a, b, is }: { a: number[]; b: number[]; is: string }) {
  return (
    <p class="numbers num">
      ={' '}
      {a.slice(0, most).map((x, c) => (
        <>
          {c > 0 && ' + '}
          <span class="term">
            <b class="accent">{bracket(x)}</b> · <b class="accent">{bracket(b[c])}</b>
          </span>
        </>
      ))}
      {a.length > most && ' + …'}{' '}
      <span class="term">
        = <b class="accent">{is}</b>
      </span>
    </p>
  );
}
const index = (i: number, j: number | string) => <mtext>{`${i + 1}${typeof j === 'number' ? `,${j + 1}` : j}`}</mtext>;
const vector = (row: number[]) => `(${row.map(short).join(', ')})`;

export function Made({ data, at, q, k, v }: { data: Attended; at: Place; q: Matrix; k: Matrix; v: Matrix }) {
  const of = (name: string) => data.steps.find((one) => one.name === name)!.values;
  const { row: i, column: j } = at;
  const here = of(at.step)?.[i]?.[j];
  if (here === undefined || !q[i]) return null;
  const is = short(here);
  const name = t(`cell_${at.step}` as 'cell_scores', { row: i + 1, column: j + 1 });
  let body: ComponentChildren = null;
  if (at.step === 'scores' && (data.score === 'dot' || data.score === 'scaled-dot') && k[j]) {
    body = (
      <>
        <M block>
          <Sub of={<I>q</I>} by={index(i, '')} />
          <O>·</O>
          <Sub of={<I>k</I>} by={index(j, '')} />
          <O>=</O>
          <Sum over={<I>c</I>} />
          <Sub of={<I>q</I>} by={<I>c</I>} />
          <Sub of={<I>k</I>} by={<I>c</I>} />
        </M>
        <Products a={q[i]} b={k[j]} is={is} />
      </>
    );
  } else if (at.step === 'scores') {
    body = (
      <>
        <p>
          <code>{data.formula}</code>
        </p>
        <p class="numbers num">
          q = <b class="accent">{vector(q[i])}</b>, k = <b class="accent">{vector(k[j] ?? [])}</b>, a = <b class="accent">{is}</b>
        </p>
      </>
    );
  } else if (at.step === 'scaled') {
    const factor = Number(data.steps.find((one) => one.name === 'scaled')!.formula.replace('times ', ''));
    body = (
      <p class="numbers">
        <M>
          <N>{bracket(value(of('scores')[i][j]))}</N>
          <O>·</O>
          <N>{num(factor)}</N>
          <O>=</O>
          <N>{is}</N>
        </M>
        <br />
        <span class="soft">{data.score === 'scaled-dot' ? t('factorScaled', { d: q[0].length }) : t('factorTemperature')}</span>
      </p>
    );
  } else if (at.step === 'masked') {
    body = <p>{here === '-inf' ? rich('maskHides', { query: i + 1, key: j + 1 }) : rich('maskKeeps', { query: i + 1, key: j + 1, is })}</p>;
  } else if (at.step === 'weights') {
    const row = of('masked')[i].map(value);
    const seen = row.filter(Number.isFinite);
    body = data.empty_rows.includes(i) ? (
      <p>{rich('rowEmpty', { query: i + 1 })}</p>
    ) : (
      <>
        <M block>
          <Frac
            over={<Sup of={<I>e</I>} to={<N>{short(of('masked')[i][j])}</N>} />}
            under={
              <Row>
                {seen.slice(0, most).map((x, c) => (
                  <>
                    {c > 0 && <O>+</O>}
                    <Sup of={<I>e</I>} to={<N>{short(x)}</N>} />
                  </>
                ))}
                {seen.length > most && <mtext>+ …</mtext>}
              </Row>
            }
          />
        </M>
        <p class="numbers num">
          = <b class="accent">{is}</b>
        </p>
        {seen.length < row.length && <p class="soft">{t('softmaxHidden', { hidden: row.length - seen.length })}</p>}
      </>
    );
  } else if (at.step === 'output') {
    const weights = of('weights')[i].map(value);
    body = (
      <>
        <M block>
          <Sum over={<I>j</I>} />
          <Sub of={<I>α</I>} by={<Row><mn>{i + 1}</mn><O>,</O><I>j</I></Row>} />
          <Sub of={<I>v</I>} by={<Row><I>j</I><O>,</O><mn>{j + 1}</mn></Row>} />
        </M>
        <Products a={weights} b={v.map((row) => row[j])} is={is} />
      </>
    );
  }
  return (
    <div class="made" aria-live="polite">
      <p>
        <b>{name}</b>
      </p>
      {body}
    </div>
  );
}
