// A Transformer as a diagram that can be clicked through, with the shapes that this sentence has in it.
import { useEffect, useRef } from 'preact/hooks';
import { t } from '../words';
import { textWidth } from './heat';

interface DiagramProps {
  encoder: number; // layers
  decoder: number;
  heads: number;
  read: string[]; // tokens
  written: string[];
  width: number; // of the residual stream
  vocabulary: number;
  at: string;
  edited: string[]; // paths with an edit
  pick: (path: string) => void;
}
interface Part {
  path: string;
  label: string;
  shape: string;
  x: number;
  y: number;
}
const W = 244; // a box
const H = 36;
const gap = 12;

export function Diagram(props: DiagramProps) {
  const svg = useRef<SVGSVGElement>(null);
  const [n, m] = [props.read.length, props.written.length];
  const layers = Math.max(props.encoder, props.decoder);
  const block = 3 * H + 2 * gap + 34;
  const height = layers * block + 210;
  const base = height - 52;
  const left = 12;
  const right = left + W + 84;
  const parts: Part[] = [];
  const add = (path: string, label: string, shape: string, x: number, y: number) => parts.push({ path, label, shape, x, y });
  add('encoder.embedding', t('embeddingBox'), `${n} × ${props.width}`, left, base - H);
  add('decoder.embedding', t('embeddingBox'), `${m} × ${props.width}`, right, base - H);
  const bottomOf = (layer: number) => base - H - 26 - layer * block;
  for (let layer = 0; layer < props.encoder; ++layer) {
    const y = bottomOf(layer);
    add(`encoder.${layer}.self`, t('selfBox'), `${props.heads} × ${n} × ${n}`, left, y - H - 12);
    add(`encoder.${layer}`, t('ffnBox'), `${n} × ${props.width}`, left, y - 2 * H - gap - 12);
  }
  for (let layer = 0; layer < props.decoder; ++layer) {
    const y = bottomOf(layer);
    add(`decoder.${layer}.self`, t('maskedBox'), `${props.heads} × ${m} × ${m}`, right, y - H - 12);
    add(`decoder.${layer}.cross`, t('crossBox'), `${props.heads} × ${m} × ${n}`, right, y - 2 * H - gap - 12);
    add(`decoder.${layer}`, t('ffnBox'), `${m} × ${props.width}`, right, y - 3 * H - 2 * gap - 12);
  }
  const top = bottomOf(props.decoder) + 26 - H - 20;
  add('decoder.output', t('outputBox'), `${m} × ${props.vocabulary}`, right, top);
  const encoderTop = bottomOf(props.encoder - 1) - 2 * H - gap - 12 - 12;
  const spine = left + W + 44;
  const keys = (event: KeyboardEvent, index: number) => {
    const here = parts[index];
    const column = parts.filter((one) => one.x === here.x).sort((a, b) => b.y - a.y);
    const k = column.indexOf(here);
    let next: Part | undefined;
    if (event.key === 'ArrowUp') next = column[k + 1];
    else if (event.key === 'ArrowDown') next = column[k - 1];
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      next = parts.filter((one) => one.x !== here.x).sort((a, b) => Math.abs(a.y - here.y) - Math.abs(b.y - here.y))[0];
    } else if (event.key === 'Enter' || event.key === ' ') next = here;
    else return;
    event.preventDefault();
    if (!next) return;
    props.pick(next.path);
    svg.current?.querySelector<SVGElement>(`[data-path="${next.path}"]`)?.focus();
  };
  // Where the screen is too narrow for the whole model, the part that is chosen is in view.
  useEffect(() => {
    const pane = svg.current?.parentElement;
    const box = svg.current?.querySelector('.box.on');
    if (!pane || !box || pane.scrollWidth <= pane.clientWidth) return;
    const [a, b] = [pane.getBoundingClientRect(), box.getBoundingClientRect()];
    if (b.right > a.right || b.left < a.left) pane.scrollLeft += b.left + b.width / 2 - a.left - a.width / 2;
  }, [props.at]);
  const clip = (tokens: string[]) => {
    let text = tokens.join(' ');
    while (text.length > 4 && textWidth(text) > W) text = `${text.slice(0, -3).trimEnd()}…`;
    return text;
  };
  const frame = (x: number, layer: number, boxes: number) => {
    const y = bottomOf(layer);
    const h = boxes * H + (boxes - 1) * gap + 24;
    return <rect class="block" x={x - 10} y={y - h} width={W + 20} height={h} rx={14} />;
  };
  const total = right + W + 30;
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  return (
    <svg ref={svg} class="diagram" viewBox={`0 0 ${total} ${height}`} style={{ width: '100%', maxWidth: `${total * 1.08}px` }} role="group" aria-label={t('diagramTitle')}>
      <line class="flow" x1={left + W / 2} x2={left + W / 2} y1={base + 12} y2={encoderTop - 14} />
      <line class="flow" x1={right + W / 2} x2={right + W / 2} y1={base + 12} y2={top - 26} />
      <path class="flow" d={`M${left + W / 2},${encoderTop - 14}H${spine}V${Math.max(...parts.filter((one) => one.path.endsWith('.cross')).map((one) => one.y + H / 2), encoderTop)}`} />
      {parts
        .filter((one) => one.path.endsWith('.cross'))
        .map((one) => (
          <path class="flow" d={`M${spine},${one.y + H / 2}H${right - 4}`} marker-end="url(#arrowhead)" />
        ))}
      <defs>
        <marker id="arrowhead" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto">
          <path class="head" d="M0,0L8,4L0,8z" />
        </marker>
      </defs>
      {numbers(props.encoder).map((layer) => frame(left, layer, 2))}
      {numbers(props.decoder).map((layer) => frame(right, layer, 3))}
      {numbers(props.encoder).map((layer) => (
        <text class="times" x={left + W + 16} y={bottomOf(layer) - H - 24}>
          {layer + 1}
        </text>
      ))}
      {numbers(props.decoder).map((layer) => (
        <text class="times" x={right + W + 16} y={bottomOf(layer) - H - 24}>
          {layer + 1}
        </text>
      ))}
      <text class="words" x={left + W / 2} y={base + 28} text-anchor="middle">
        {clip(props.read)}
      </text>
      <text x={left + W / 2} y={base + 46} text-anchor="middle">
        {t('encoderReads', { n })}
      </text>
      <text class="words" x={right + W / 2} y={base + 28} text-anchor="middle">
        {clip(['‹bos›', ...props.written.slice(0, -1)])}
      </text>
      <text x={right + W / 2} y={base + 46} text-anchor="middle">
        {t('decoderReads', { n: m })}
      </text>
      <text class="words" x={right + W / 2} y={top - 32} text-anchor="middle">
        {clip(props.written)}
      </text>
      {parts.map((one, index) => (
        <g
          class={`box${props.at === one.path ? ' on' : ''}${props.edited.includes(one.path) ? ' edited' : ''}${/self|cross/.test(one.path) ? ' attention' : ''}`}
          data-path={one.path}
          tabindex={props.at === one.path ? 0 : -1}
          role="button"
          aria-pressed={props.at === one.path}
          aria-label={`${one.label}, ${one.path}, ${one.shape}`}
          onClick={() => props.pick(one.path)}
          onKeyDown={(event) => keys(event, index)}
        >
          <rect x={one.x} y={one.y} width={W} height={H} rx={9} />
          <text x={one.x + 12} y={one.y + H / 2 + 5}>
            {one.label}
          </text>
          <text class="shape" x={one.x + W - 12} y={one.y + H / 2 + 5} text-anchor="end">
            {one.shape}
          </text>
        </g>
      ))}
    </svg>
  );
}
