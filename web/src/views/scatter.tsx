// Points that can be moved, the fit through them, its band, and the weights that one query gives to every point.
import { scaleLinear } from 'd3-scale';
import { useMemo, useRef } from 'preact/hooks';
import { fixed, num } from '../num';
import { t } from '../words';
import { useWidth } from '../ui';

interface ScatterProps {
  points: [number, number][];
  grid: number[];
  fit: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  truth?: number[]; // at 0, 0.1, ... 5
  weights?: number[];
  at: number;
  prediction: number | null;
  move: (index: number, x: number, y: number) => void;
  query: (x: number) => void;
  add: (x: number, y: number) => void;
  remove: (index: number) => void;
}

const round = (x: number) => Math.round(x * 1000) / 1000;

function path(xs: number[], ys: (number | null)[], sx: (x: number) => number, sy: (y: number) => number) {
  let out = '';
  let pen = 'M';
  xs.forEach((x, i) => {
    const y = ys[i];
    if (y === null || y === undefined || !Number.isFinite(y)) pen = 'M';
    else {
      out += `${pen}${sx(x).toFixed(1)},${sy(y).toFixed(1)}`;
      pen = 'L';
    }
  });
  return out;
}

/** The axis of some values: the usual one, or one of their own with some room if they do not fit there. */
export function rangeOf(values: number[], low: number, high: number): [number, number] {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (!values.length || (least >= low && most <= high)) return [low, high];
  const room = 0.3 * (most - least) || 1;
  return [least - room, most + room];
}

export function Scatter(props: ScatterProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const svg = useRef<SVGSVGElement>(null);
  const dragged = useRef<number | null>(null);
  const height = width < 560 ? 340 : 430;
  const edge = { left: 34, right: 12, top: 14, bottom: 30 };
  // While a point is dragged the axes stay where they are.
  const frozen = useRef<[number, number, number, number] | null>(null);
  const extent = useMemo<[number, number, number, number]>(() => {
    if (dragged.current !== null && frozen.current) return frozen.current;
    const xs = props.points.map((p) => p[0]);
    const ys = props.points.map((p) => p[1]);
    const e: [number, number, number, number] = [...rangeOf(xs, 0, 5), ...rangeOf(ys, -1, 5)];
    frozen.current = e;
    return e;
  }, [props.points]);
  const sx = scaleLinear([extent[0], extent[1]], [edge.left, Math.max(edge.left + 10, width - edge.right)]);
  const sy = scaleLinear([extent[2], extent[3]], [height - edge.bottom, edge.top]);
  const bound = (x: number, low: number, high: number) => Math.max(low, Math.min(high, x));
  const spot = (event: PointerEvent | MouseEvent): [number, number] => {
    const r = svg.current!.getBoundingClientRect();
    return [round(bound(sx.invert(event.clientX - r.left), extent[0], extent[1])), round(bound(sy.invert(event.clientY - r.top), extent[2], extent[3]))];
  };
  const high = Math.max(1e-9, ...(props.weights ?? [0]));
  const keys = (event: KeyboardEvent, index: number) => {
    const [x, y] = props.points[index];
    const step = event.shiftKey ? 0.5 : 0.05;
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (by) {
      event.preventDefault();
      event.stopPropagation();
      props.move(index, round(x + by[0]), round(y + by[1]));
    } else if (event.key === 'Delete' || event.key === 'Backspace') {
      event.preventDefault();
      event.stopPropagation();
      props.remove(index);
    }
  };
  const queryKeys = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -0.05, ArrowRight: 0.05 }[event.key];
    if (!by || event.target !== event.currentTarget) return;
    event.preventDefault();
    props.query(round(bound(props.at + by * (event.shiftKey ? 10 : 1), extent[0], extent[1])));
  };
  const band = props.low && props.high ? props.grid.map((x, i) => [x, props.low![i], props.high![i]] as const).filter((r) => r[1] !== null && r[2] !== null) : [];
  const label = !props.weights ? '' : props.prediction === null ? t('noAnswerHere') : `f(${fixed(props.at, 2)}) = ${num(props.prediction)}`;
  return (
    <div class="scatter" ref={box} style={{ minHeight: `${height}px` }}>
      {width > 0 && (
        <svg
          ref={svg}
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="group"
          aria-label={t('scatterLabel', { count: props.points.length })}
          onPointerMove={(event) => {
            const [x, y] = spot(event);
            if (dragged.current !== null) props.move(dragged.current, x, y);
            else if (event.pointerType === 'mouse' || event.buttons) props.query(x);
          }}
          onPointerUp={() => (dragged.current = null)}
          onPointerCancel={() => (dragged.current = null)}
          onDblClick={(event) => {
            if (!(event.target as Element).closest('.point')) props.add(...spot(event));
          }}
        >
          <defs>
            <clipPath id="plot">
              <rect x={edge.left} y={edge.top - 8} width={Math.max(0, width - edge.left - edge.right)} height={height - edge.top - edge.bottom + 8} />
            </clipPath>
          </defs>
          {sy.ticks(6).map((y) => (
            <g class="axis">
              <line x1={edge.left} x2={width - edge.right} y1={sy(y)} y2={sy(y)} />
              <text x={edge.left - 8} y={sy(y) + 4} text-anchor="end">
                {y}
              </text>
            </g>
          ))}
          {sx.ticks(width < 560 ? 5 : 10).map((x) => (
            <text class="tick" x={sx(x)} y={height - 8} text-anchor="middle">
              {x}
            </text>
          ))}
          <g clip-path="url(#plot)">
            {band.length > 1 && <path class="band" d={`M${band.map((r) => `${sx(r[0]).toFixed(1)},${sy(r[2]!).toFixed(1)}`).join('L')}L${[...band].reverse().map((r) => `${sx(r[0]).toFixed(1)},${sy(r[1]!).toFixed(1)}`).join('L')}Z`} />}
            {props.truth && <path class="truth" d={path(props.truth.map((_, i) => i / 10), props.truth, sx, sy)} />}
            <path class="fit" d={path(props.grid, props.fit, sx, sy)} />
            <g class="weightbars">
              {props.weights?.map((w, i) =>
                props.points[i] && w > 1e-6 ? <line x1={sx(props.points[i][0])} x2={sx(props.points[i][0])} y1={height - edge.bottom} y2={height - edge.bottom - (92 * w) / Math.max(high, 0.02)} /> : null,
              )}
            </g>
          </g>
          <g
            class="query"
            tabindex={0}
            role="slider"
            aria-label={t('query')}
            aria-valuenow={props.at}
            aria-valuemin={extent[0]}
            aria-valuemax={extent[1]}
            aria-valuetext={label}
            onKeyDown={queryKeys}
          >
            <line x1={sx(props.at)} x2={sx(props.at)} y1={edge.top} y2={height - edge.bottom} />
            {props.prediction !== null && <circle cx={sx(props.at)} cy={sy(props.prediction)} r={6} />}
            <text class="halo" x={sx(props.at) + (sx(props.at) > width - 170 ? -12 : 12)} y={edge.top + 8} text-anchor={sx(props.at) > width - 170 ? 'end' : 'start'}>
              {label}
            </text>
          </g>
          {props.points.map(([x, y], i) => {
            const w = props.weights?.[i] ?? 0;
            return (
              <circle
                class="point"
                cx={sx(x)}
                cy={sy(y)}
                r={5 + 4 * Math.sqrt(w / high)}
                fill-opacity={0.12 + 0.85 * (w / high)}
                tabindex={0}
                role="button"
                aria-label={t('pointLabel', { x: num(x), y: num(y), weight: fixed(w) })}
                onKeyDown={(event) => keys(event, i)}
                onPointerDown={(event) => {
                  if (event.button !== 0) return;
                  dragged.current = i;
                  svg.current!.setPointerCapture(event.pointerId);
                  event.currentTarget.focus();
                  event.preventDefault();
                }}
                onDblClick={(event) => {
                  event.stopPropagation();
                  props.remove(i);
                }}
              />
            );
          })}
        </svg>
      )}
    </div>
  );
}
