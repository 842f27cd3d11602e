// Alignment lines: what was read above (or left), what was written below (or right), each line as thick as its weight.
import { useMemo } from 'preact/hooks';
import { fixed, word } from '../num';
import { hover, point } from '../store';
import { t } from '../words';
import { useWidth } from '../ui';
import { textWidth } from './heat';

export interface LinesProps {
  source: string[];
  target: string[];
  weights: number[][]; // target x source
  unknown?: number[]; // source words that the model does not know
  picked: number;
  onPick: (target: number) => void;
  sourceTitle: string;
  targetTitle: string;
  probabilities?: number[]; // per target word, drawn as a bar below it
  floor?: number; // lines below this weight are not drawn, and the note says so
}

interface Spot {
  x: number;
  y: number;
  w: number;
}

const font = '16px system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif';
/** Places words along a line of this width; null if they do not fit. */
function place(tokens: string[], width: number, y: number): Spot[] | null {
  const widths = tokens.map((token) => textWidth(word(token), font) + 12);
  const sum = widths.reduce((a, b) => a + b, 0);
  if (sum > width) return null;
  const gap = Math.min(56, (width - sum) / Math.max(1, tokens.length));
  let x = (width - sum - gap * tokens.length) / 2 + gap / 2;
  return widths.map((w) => {
    const spot = { x: x + w / 2, y, w };
    x += w + gap;
    return spot;
  });
}

export function Lines(props: LinesProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const floor = props.floor ?? 0.03;
  const shape = useMemo(() => {
    if (!width) return null;
    const top = place(props.source, width, 46);
    const bottom = place(props.target, width, 258);
    if (top && bottom) return { top, bottom, height: props.probabilities ? 318 : 298, upright: false };
    const step = 30;
    const [a, b] = [props.source, props.target].map((ts) => Math.max(40, ...ts.map((x) => textWidth(word(x), font))) + 16);
    const right = Math.min(width - 1, 640);
    const column = (tokens: string[], x: number, w: number) => {
      const tall = Math.max(props.source.length, props.target.length) * step;
      const own = tall / tokens.length;
      return tokens.map((_, i) => ({ x, y: 44 + own * (i + 0.5), w }));
    };
    return {
      top: column(props.source, a / 2 + 2, a),
      bottom: column(props.target, right - b / 2 - (props.probabilities ? 64 : 2), b),
      height: 60 + step * Math.max(props.source.length, props.target.length),
      upright: true,
    };
  }, [width, props.source.join('\n'), props.target.join('\n'), !!props.probabilities]);

  const lit = hover.value;
  const row = lit?.row;
  const column = lit?.column;
  const path = (from: Spot, to: Spot) => {
    if (shape!.upright) {
      const [x1, x2] = [from.x + from.w / 2, to.x - to.w / 2];
      return `M${x1},${from.y}C${(x1 + x2) / 2},${from.y} ${(x1 + x2) / 2},${to.y} ${x2},${to.y}`;
    }
    const [y1, y2] = [from.y + 16, to.y - 18];
    return `M${from.x},${y1}C${from.x},${(y1 + y2) / 2} ${to.x},${(y1 + y2) / 2} ${to.x},${y2}`;
  };
  const keys = (event: KeyboardEvent, i: number) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      const next = Math.max(0, Math.min(props.target.length - 1, i + by));
      props.onPick(next);
      (box.current!.querySelectorAll('g.target')[next] as SVGElement).focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      props.onPick(i);
    }
  };
  return (
    <div class="lines" ref={box}>
      {shape && (
        <svg width={width} height={shape.height} viewBox={`0 0 ${width} ${shape.height}`} role="group" aria-label={t('linesLabel')}>
          <text class="side" x={shape.upright ? 2 : 8} y={16}>
            {props.sourceTitle}
          </text>
          <text class="side" x={shape.upright ? shape.bottom[0].x + shape.bottom[0].w / 2 : 8} y={shape.upright ? 16 : shape.height - 6} text-anchor={shape.upright ? 'end' : 'start'}>
            {props.targetTitle}
          </text>
          <g class="threads" fill="none">
            {props.weights.map((weights, i) =>
              weights.map((weight, j) => {
                if (weight < floor || !shape.top[j] || !shape.bottom[i]) return null;
                const on = row !== undefined || column !== undefined ? (row === undefined || row === i) && (column === undefined || column === j) : true;
                return (
                  <path
                    d={path(shape.top[j], shape.bottom[i])}
                    stroke-width={1 + weight * 10}
                    class={row === i || (row === undefined && column === j) ? 'on' : ''}
                    opacity={on ? 0.15 + 0.65 * weight + (lit ? 0.2 : 0) : 0.06}
                  />
                );
              }),
            )}
          </g>
          {props.source.map((token, j) => {
            const { x, y, w } = shape.top[j];
            const weight = row !== undefined ? props.weights[row]?.[j] : undefined;
            return (
              <g class={`token source${column === j ? ' on' : ''}${props.unknown?.includes(j) ? ' unknown' : ''}`} onMouseEnter={() => point(undefined, j)} onMouseLeave={() => point()}>
                <rect x={x - w / 2} y={y - 15} width={w} height={30} rx={7} />
                <text x={x} y={y + 5} text-anchor="middle" opacity={weight === undefined ? 1 : 0.35 + 0.65 * Math.min(1, weight * 2)}>
                  {word(token)}
                </text>
                {weight !== undefined && weight >= floor && !shape.upright && (
                  <text class="weight" x={x} y={y - 19} text-anchor="middle">
                    {fixed(weight, 2)}
                  </text>
                )}
              </g>
            );
          })}
          {props.target.map((token, i) => {
            const { x, y, w } = shape.bottom[i];
            const p = props.probabilities?.[i];
            return (
              <g
                class={`token target${row === i ? ' on' : ''}${props.picked === i ? ' picked' : ''}`}
                tabindex={i === Math.min(props.picked, props.target.length - 1) ? 0 : -1}
                role="button"
                aria-pressed={props.picked === i}
                aria-label={`${word(token)}${p === undefined ? '' : `, p = ${fixed(p)}`}`}
                onMouseEnter={() => point(i, undefined)}
                onMouseLeave={() => point()}
                onFocus={() => point(i, undefined)}
                onBlur={() => point()}
                onClick={() => props.onPick(i)}
                onKeyDown={(event) => keys(event, i)}
              >
                <rect x={x - w / 2} y={y - 15} width={w} height={30} rx={7} />
                <text x={x} y={y + 5} text-anchor="middle">
                  {word(token)}
                </text>
                {p !== undefined &&
                  (shape.upright ? (
                    <>
                      <rect class="track" x={x + w / 2 + 8} y={y - 3} width={50} height={6} rx={3} />
                      <rect class={p < 0.5 ? 'sure low' : 'sure'} x={x + w / 2 + 8} y={y - 3} width={Math.max(1.5, 50 * p)} height={6} rx={3} />
                    </>
                  ) : (
                    <>
                      <rect class="track" x={x - 15} y={y + 20} width={30} height={5} rx={2.5} />
                      <rect class={p < 0.5 ? 'sure low' : 'sure'} x={x - 15} y={y + 20} width={Math.max(1.5, 30 * p)} height={5} rx={2.5} />
                    </>
                  ))}
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}
