// Small matrices with their numbers: cells that can be edited, and cells that say what made them.
import { useRef, useState } from 'preact/hooks';
import { num } from '../num';
import { t } from '../words';
import { colour, inkOn, Scale } from './colours';

export type Entry = number | '-inf' | 'inf' | 'nan';
export const value = (x: Entry): number => (typeof x === 'number' ? x : x === 'nan' ? NaN : x === 'inf' ? Infinity : -Infinity);
/** Three significant digits, without the zeros at the end that only fill. */
export const short = (x: Entry) => {
  const text = num(value(x));
  return text.includes('.') && !text.includes('e') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
};
/** At most three decimals, so that columns stay narrow; the exact number is in the tooltip and in the files. */
const cell = (x: Entry) => {
  const number = value(x);
  return Number.isFinite(number) && Math.abs(number) < 0.1 ? short(Math.round(1000 * number) / 1000) : short(x);
};

/** Rows of numbers from pasted text: commas, tabs, semicolons or spaces; null if there is anything else in it. */
export function readNumbers(text: string): number[][] | null {
  const rows = text
    .replace(/[[\]]/g, ' ')
    .trim()
    .split(/[\n\r]+/)
    .map((line) => line.trim().split(/[,;\t ]+/).filter(Boolean).map((cell) => Number(cell.replace('−', '-'))));
  return rows.length && rows.every((row) => row.length > 0 && row.every(Number.isFinite)) ? rows : null;
}

interface EditProps {
  name: string;
  values: number[][];
  lit?: (row: number, column: number) => boolean;
  set: (values: number[][]) => void; // of the same size, or of the pasted one
  rowName?: (row: number) => string;
  note?: string;
}

/** A matrix to write in. Arrow keys up and down and Enter move; a pasted block replaces the whole matrix. */
export function EditMatrix(props: EditProps) {
  const table = useRef<HTMLTableElement>(null);
  const [typed, setTyped] = useState<{ at: string; text: string } | null>(null);
  const [bad, setBad] = useState('');
  const focus = (row: number, column: number) => {
    const cell = table.current?.querySelector<HTMLInputElement>(`[data-cell="${row},${column}"]`);
    cell?.focus();
    cell?.select();
  };
  const keys = (event: KeyboardEvent, i: number, j: number) => {
    const by = { ArrowUp: -1, ArrowDown: 1, Enter: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    focus((i + by + props.values.length) % props.values.length, j);
  };
  const write = (text: string, i: number, j: number) => {
    const number = Number(text.trim().replace('−', '-'));
    const good = text.trim() !== '' && Number.isFinite(number) && Math.abs(number) <= 1e6;
    setTyped({ at: `${i},${j}`, text });
    setBad(good || /^\s*[-−+]?\.?\s*$/.test(text) ? '' : t('notANumber', { text }));
    if (good) props.set(props.values.map((row, r) => (r === i ? row.map((x, c) => (c === j ? number : x)) : row)));
  };
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData?.getData('text') ?? '';
    if (!/[\n\t,; ]/.test(text.trim())) return;
    event.preventDefault();
    const rows = readNumbers(text);
    if (!rows || rows.some((row) => row.length !== rows[0].length)) return setBad(t('pasteNoMatrix'));
    if (rows.length > 12 || rows[0].length > 12) return setBad(t('pasteTooLarge', { rows: rows.length, columns: rows[0].length }));
    setBad('');
    setTyped(null);
    props.set(rows);
  };
  return (
    <div class="edit">
      <table ref={table} class="cells" onPaste={paste} aria-label={props.name}>
        <caption>
          <i>{props.name}</i> <span class="soft num">{`${props.values.length} × ${props.values[0].length}`}</span>
        </caption>
        <tbody>
          {props.values.map((row, i) => (
            <tr>
              {props.rowName && <th scope="row">{props.rowName(i)}</th>}
              {row.map((x, j) => (
                <td class={props.lit?.(i, j) ? 'lit' : ''}>
                  <input
                    type="text"
                    inputMode="decimal"
                    data-cell={`${i},${j}`}
                    aria-label={`${props.name} ${i + 1}, ${j + 1}`}
                    value={typed?.at === `${i},${j}` ? typed.text : short(x)}
                    onInput={(event) => write(event.currentTarget.value, i, j)}
                    onFocus={(event) => event.currentTarget.select()}
                    onBlur={() => (setTyped(null), setBad(''))}
                    onKeyDown={(event) => keys(event, i, j)}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.note && <p class="note">{props.note}</p>}
      {bad && <p class="second" role="alert">{bad}</p>}
    </div>
  );
}

export interface Step {
  name: string;
  title: string;
  values: Entry[][];
  scale: Scale;
}
export interface Place {
  step: string;
  row: number;
  column: number;
}
interface StepsProps {
  steps: Step[];
  at: Place;
  made: (place: Place) => boolean; // whether this cell is one of those that made the one pointed at
  point: (place: Place | null) => void;
  pick: (place: Place) => void;
  width: number;
  label: string;
}

/** Matrices one after the other, as many per line as fit; the cell pointed at and what made it are framed. */
export function Steps(props: StepsProps) {
  const svg = useRef<SVGSVGElement>(null);
  const longest = Math.max(...props.steps.flatMap((s) => s.values.flat().map((x) => cell(x).length)));
  const ch = 38;
  const gap = 26;
  const columns = Math.max(1, ...props.steps.map((s) => s.values[0]?.length ?? 0));
  const total = props.steps.reduce((sum, s) => sum + (s.values[0]?.length ?? 0), 0);
  const inOneLine = (props.width - gap * (props.steps.length - 1) - 4) / total;
  const cw = Math.min(64, inOneLine >= 7.4 * longest + 4 ? inOneLine : 8.2 * longest + 10, Math.max(26, (props.width - 4) / columns));
  const size = Math.max(9, Math.min(14.5, (cw - 5) / longest / 0.6));
  const rows = Math.max(1, ...props.steps.map((s) => s.values.length));
  let x = 2;
  let y = 0;
  const spots = props.steps.map((s) => {
    const w = (s.values[0]?.length ?? 0) * cw;
    if (x > 2 && x + w > props.width) {
      x = 2;
      y += rows * ch + 58;
    }
    const spot = { x, y: y + 30, w };
    x += w + gap;
    return spot;
  });
  const height = y + 30 + rows * ch + 6;
  const keys = (event: KeyboardEvent, place: Place) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    let index = props.steps.findIndex((s) => s.name === place.step);
    let row = place.row + by[0];
    let column = place.column + by[1];
    if (column < 0 && index > 0) column = props.steps[--index].values[0].length - 1;
    else if (column >= props.steps[index].values[0].length && index < props.steps.length - 1) {
      ++index;
      column = 0;
    }
    row = Math.max(0, Math.min(props.steps[index].values.length - 1, row));
    column = Math.max(0, Math.min(props.steps[index].values[0].length - 1, column));
    const next = { step: props.steps[index].name, row, column };
    props.pick(next);
    svg.current?.querySelector<SVGElement>(`[data-at="${next.step},${row},${column}"]`)?.focus();
  };
  return (
    <svg ref={svg} class="steps" width={props.width} height={height} viewBox={`0 0 ${props.width} ${height}`} role="group" aria-label={props.label}>
      {props.steps.map((s, k) => {
        const spot = spots[k];
        return (
          <g role="group" aria-label={s.title}>
            <text class="title" x={spot.x} y={spot.y - 11}>
              {s.title}
            </text>
            {k > 0 && spots[k - 1].y === spot.y && (
              <text class="arrow" x={spot.x - gap / 2} y={spot.y + (s.values.length * ch) / 2 + 6} text-anchor="middle">
                →
              </text>
            )}
            {s.values.map((row, i) =>
              row.map((entry, j) => {
                const place = { step: s.name, row: i, column: j };
                const on = props.at.step === s.name && props.at.row === i && props.at.column === j;
                const made = props.made(place);
                const number = value(entry);
                const hidden = !Number.isFinite(number);
                return (
                  <g
                    class={`cell${on ? ' on' : made ? ' made' : ''}${hidden ? ' gone' : ''}`}
                    data-at={`${s.name},${i},${j}`}
                    tabindex={on ? 0 : -1}
                    role="button"
                    aria-label={`${s.title} ${i + 1}, ${j + 1}: ${short(entry)}`}
                    aria-pressed={on}
                    onPointerEnter={() => props.point(place)}
                    onPointerLeave={() => props.point(null)}
                    onClick={() => props.pick(place)}
                    onKeyDown={(event) => keys(event, place)}
                  >
                    <title>{String(number)}</title>
                    <rect x={spot.x + j * cw + 1} y={spot.y + i * ch + 1} width={cw - 2} height={ch - 2} rx={4} style={hidden ? undefined : { fill: colour(number, s.scale) }} />
                    <text x={spot.x + (j + 0.5) * cw} y={spot.y + (i + 0.5) * ch + 5} text-anchor="middle" style={{ fontSize: `${size}px`, ...(hidden ? {} : { fill: inkOn(number, s.scale) }) }}>
                      {cell(entry)}
                    </text>
                  </g>
                );
              }),
            )}
          </g>
        );
      })}
    </svg>
  );
}
