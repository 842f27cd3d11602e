// The learned width of section 10.2, in an instant: every change of seed, rate or epochs is answered at once.
import { follow } from '../api';
import { hasEngine } from '../engine';
import { num } from '../num';
import { Shown } from '../ui';
import { t } from '../words';
import { Curve, CurveProps, curveSvg } from '../views/curve';
import { scaleOf } from '../views/colours';
import { Figure } from '../views/figure';
import { Heat, HeatProps, heatSvg } from '../views/heat';
import { bookPoints, bookTruth } from './book_points';
import { epochs, kind, rate, s } from './training_settings';

interface Learned {
  start: number;
  w: number[];
  loss: number[];
}
interface Fitted {
  bandwidth: number;
  grid: number[];
  fit: (number | null)[];
  map?: { rows: number[]; weights: number[][] };
  command?: string;
}
const data = { x: bookPoints.map((p) => p[0]), y: bookPoints.map((p) => p[1]) };
const wanted = () => hasEngine && kind.value === 'nadaraya-watson';
const learned = follow<Learned>(() => (wanted() ? { path: '/regress/learn', body: { ...data, epochs: epochs.value, rate: rate.value, seed: s.seed.value } } : null));
const grid = { low: 0, high: 5, count: 51 };
const fitOf = (w: number | undefined) => (wanted() && w && Number.isFinite(w) ? { path: '/regress', body: { ...data, bandwidth: 1 / Math.abs(w), grid, leave_one_out: false } } : null);
const before = follow<Fitted>(() => fitOf(learned.value.data?.start));
const after = follow<Fitted>(() => fitOf(learned.value.data?.w[learned.value.data.w.length - 1]));

export function LearnedWidth() {
  return (
    <Shown of={learned} height={320}>
      {(now) => {
        const steps = now.loss.map((_, i) => i + 1);
        const loss: CurveProps = { x: steps, series: [{ label: t('loss'), values: now.loss }], xLabel: t('fact_epoch'), height: 260, label: t('lossWidth') };
        const end = now.w[now.w.length - 1];
        return (
          <>
            <p class="learned num" aria-live="polite" data-w={end}>
              {t('widthLine', { start: num(now.start), end: num(end), width: num(1 / Math.abs(end)), loss: num(now.loss[now.loss.length - 1], 4) })}
            </p>
            <div class="pair">
              <Figure name="loss" title={loss.label} svg={() => curveSvg(loss)} table={() => ({ header: [t('fact_epoch'), t('loss'), 'w'], rows: steps.map((n) => [n, now.loss[n - 1], now.w[n - 1]]) })} json={() => now}>
                <Curve {...loss} />
              </Figure>
              <Shown of={after} height={260}>
                {(fitted) => {
                  const curve: CurveProps = {
                    x: fitted.grid,
                    series: [
                      { label: t('withLearned'), values: fitted.fit },
                      { label: t('withStart'), values: before.value.data?.fit ?? fitted.grid.map(() => null), colour: 'second', dashed: true },
                      { label: t('trueCurve'), values: bookTruth, colour: 'soft', dashed: true },
                    ],
                    xLabel: 'x',
                    height: 260,
                    label: t('fitLearned'),
                  };
                  return (
                    <Figure name="fit" title={curve.label} svg={() => curveSvg(curve)} table={() => ({ header: ['x', ...curve.series.map((one) => one.label)], rows: curve.x.map((x, i) => [x, ...curve.series.map((one) => one.values[i] ?? '')]) })} json={() => fitted} command={fitted.command}>
                      <Curve {...curve} />
                    </Figure>
                  );
                }}
              </Shown>
            </div>
            <div class="pair">
              {([[before, 'mapBefore'], [after, 'mapAfter']] as const).map(([of, title]) => {
                const map = of.value.data?.map;
                if (!map) return null;
                const heat: HeatProps = { values: map.weights, rows: [], columns: [], scale: scaleOf(map.weights), label: t(title), maxCell: 1000, tall: 220, rowName: t('queryRow'), columnName: t('keyColumn') };
                return (
                  <Figure name={title} title={heat.label} svg={() => heatSvg(heat)} table={() => ({ header: ['query', ...data.x.map((x) => `key ${x}`)], rows: map.weights.map((row, i) => [map.rows[i], ...row]) })} json={() => map}>
                    <Heat {...heat} />
                  </Figure>
                );
              })}
            </div>
          </>
        );
      }}
    </Shown>
  );
}
