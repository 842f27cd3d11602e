// Labelled bars: what a word attends to, what else it could have been, how important a head is.
import { fixed, full, num } from '../num';

export interface Bar {
  label: string;
  value: number;
  on?: boolean;
  cut?: boolean; // not kept by the setting
  title?: string;
  onPick?: () => void;
  onPoint?: (on: boolean) => void;
}

export function Bars(props: { bars: Bar[]; high?: number; decimals?: number; label: string }) {
  const high = props.high ?? Math.max(1e-12, ...props.bars.map((bar) => Math.abs(bar.value)));
  // Three decimals suit probabilities; where all bars are small they would be zeros.
  const small = props.high === undefined && high < 0.05;
  const signed = props.bars.some((bar) => bar.value < 0);
  return (
    <ul class="bars" aria-label={props.label}>
      {props.bars.map((bar) => {
        const share = Math.min(1, Math.abs(bar.value) / high);
        const body = (
          <>
            <span class="name">{bar.label}</span>
            <span class={signed ? 'track signed' : 'track'}>
              <i
                class={bar.value < 0 ? 'negative' : ''}
                style={signed ? { width: `${50 * share}%`, marginLeft: bar.value < 0 ? `${50 - 50 * share}%` : '50%' } : { width: `${100 * share}%` }}
              />
            </span>
            <span class="num" title={full(bar.value)}>
              {small ? num(bar.value, 2) : fixed(bar.value, props.decimals ?? 3)}
            </span>
          </>
        );
        const classes = `${bar.on ? 'on' : ''}${bar.cut ? ' cut' : ''}`;
        return (
          <li class={classes} title={bar.title} onMouseEnter={() => bar.onPoint?.(true)} onMouseLeave={() => bar.onPoint?.(false)}>
            {bar.onPick ? (
              <button type="button" onClick={bar.onPick} aria-pressed={!!bar.on}>
                {body}
              </button>
            ) : (
              body
            )}
          </li>
        );
      })}
    </ul>
  );
}
