// Curves with uPlot: leave-one-out error, losses, dot products. Redrawn in place when only the numbers change.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { escapeXml } from '../export';
import { num } from '../num';
import { isDark } from '../store';
import { useWidth } from '../ui';

export interface CurveProps {
  x: number[];
  series: { label: string; values: (number | null)[]; colour?: 'accent' | 'second' | 'soft'; dashed?: boolean }[];
  xLabel: string;
  yLabel?: string;
  logX?: boolean;
  logY?: boolean;
  height?: number;
  marker?: number; // a vertical line at this x
  label: string;
  onPick?: (x: number) => void;
}

const ticks = (_: uPlot, all: (number | null)[]) => all.map((x) => (x === null ? '' : num(x, 4).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')));

export function Curve(props: CurveProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const plot = useRef<uPlot | null>(null);
  const now = useRef(props);
  now.current = props;
  const dark = isDark();
  const shape = JSON.stringify([props.series.map((s) => [s.label, s.colour, s.dashed]), props.xLabel, props.yLabel, props.logX, props.logY, props.height]);
  const data = [props.x, ...props.series.map((s) => s.values)] as uPlot.AlignedData;
  useEffect(() => {
    if (!width || !box.current) return;
    const style = getComputedStyle(document.documentElement);
    const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: of('soft'), grid: { stroke: of('line'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', values: ticks as any };
    const made = new uPlot(
      {
        width,
        height: props.height ?? 220,
        legend: { show: props.series.length > 1 },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
        scales: { x: { time: false, distr: props.logX ? 3 : 1 }, y: { distr: props.logY ? 3 : 1 } },
        axes: [
          { ...axis, label: props.xLabel, labelSize: 20, size: 28 },
          { ...axis, label: props.yLabel, labelSize: props.yLabel ? 20 : 0, size: 46 },
        ],
        series: [
          { label: props.xLabel, value: (_, v) => num(v) },
          ...props.series.map((s) => ({
            label: s.label,
            stroke: of(s.colour ?? 'accent'),
            width: 2,
            dash: s.dashed ? [5, 4] : undefined,
            points: { show: (u: uPlot) => u.data[0].length < 12 }, // of what is drawn now: a training adds to it
            spanGaps: true,
            value: (_: uPlot, v: number | null) => num(v),
          })),
        ],
        hooks: {
          draw: [
            (u) => {
              const at = now.current.marker;
              if (at === undefined || !Number.isFinite(at)) return;
              const x = u.valToPos(at, 'x', true);
              if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
              u.ctx.save();
              u.ctx.strokeStyle = of('second');
              u.ctx.lineWidth = 2;
              u.ctx.beginPath();
              u.ctx.moveTo(x, u.bbox.top);
              u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
              u.ctx.stroke();
              u.ctx.restore();
            },
          ],
        },
      },
      data,
      box.current,
    );
    if (props.onPick) {
      made.over.style.cursor = 'pointer';
      made.over.addEventListener('click', (event) => now.current.onPick?.(made.posToVal(event.offsetX, 'x')));
    }
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [width, shape, dark]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [props.x, ...props.series.map((s) => s.values), props.marker]);
  return <div class="curve" ref={box} role="img" aria-label={props.label} />;
}

/** The same curves as SVG text, for files. */
export function curveSvg(props: CurveProps, width = 640): string {
  const height = props.height ?? 260;
  const all = props.series.flatMap((s) => s.values).filter((v): v is number => v !== null && Number.isFinite(v));
  const fx = props.logX ? Math.log : (v: number) => v;
  const fy = props.logY ? Math.log : (v: number) => v;
  const [x0, x1] = [fx(props.x[0]), fx(props.x[props.x.length - 1])];
  const [y0, y1] = [fy(Math.min(...all)), fy(Math.max(...all))];
  const px = (v: number) => 60 + ((fx(v) - x0) / (x1 - x0 || 1)) * (width - 80);
  const py = (v: number) => height - 44 - ((fy(v) - y0) / (y1 - y0 || 1)) * (height - 64);
  const colours = { accent: '#0b6e99', second: '#b4432f', soft: '#6a7280' };
  let out = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12"><rect width="${width}" height="${height}" fill="#fff"/>`;
  for (const at of [0, 0.5, 1]) {
    const [vx, vy] = [x0 + at * (x1 - x0), y0 + at * (y1 - y0)];
    const [lx, ly] = [props.logX ? Math.exp(vx) : vx, props.logY ? Math.exp(vy) : vy];
    out += `<line x1="60" x2="${width - 20}" y1="${py(ly)}" y2="${py(ly)}" stroke="#e4e4df"/>`;
    out += `<text x="54" y="${py(ly) + 4}" text-anchor="end">${num(ly)}</text><text x="${px(lx)}" y="${height - 26}" text-anchor="middle">${num(lx)}</text>`;
  }
  if (props.marker !== undefined) out += `<line x1="${px(props.marker)}" x2="${px(props.marker)}" y1="16" y2="${height - 44}" stroke="#b4432f" stroke-width="2"/>`;
  props.series.forEach((s, k) => {
    const points = s.values.map((v, i) => (v === null ? null : `${px(props.x[i]).toFixed(1)},${py(v).toFixed(1)}`)).filter(Boolean);
    out += `<polyline points="${points.join(' ')}" fill="none" stroke="${colours[s.colour ?? 'accent']}" stroke-width="2"${s.dashed ? ' stroke-dasharray="5 4"' : ''}/>`;
    out += `<text x="${width - 24}" y="${18 + 15 * k}" text-anchor="end" fill="${colours[s.colour ?? 'accent']}">${escapeXml(s.label)}</text>`;
  });
  return `${out}<text x="${width / 2}" y="${height - 8}" text-anchor="middle">${escapeXml(props.xLabel)}</text></svg>`;
}
