// Panels drawn with Grafana's components, as far as they are published. State
// timelines, annotations and the choice of what an empty panel shows are not: they
// follow what Grafana does.
import React from 'react';
import {
  FieldConfigOptionsRegistry, FieldType, applyFieldOverrides, cacheFieldDisplayNames, formattedValueToString, getFieldDisplayName,
  getFieldDisplayValues, getValueFormat, standardTransformers, standardTransformersRegistry, toUtc, transformDataFrame,
} from '@grafana/data';
import { BigValue, PanelChrome, TimeSeries } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { firstValueFrom } from 'rxjs';
import { frames, range } from './query.js';

// Some are there twice.
standardTransformersRegistry.setInit(() =>
  [...new Map(Object.values(standardTransformers).map((t) => [t.id, { id: t.id, name: t.name, transformation: async () => t }])).values()]
);

const plain = (id) => ({ id, path: id.replace(/^custom\./, ''), isCustom: id.startsWith('custom.'), process: (v) => v, shouldApply: () => true });

// properties is all options that the panel sets, since the packages have the registry
// of no panel.
function properties(panel) {
  const { defaults, overrides } = panel.fieldConfig;
  const custom = Object.keys(defaults.custom ?? {}).map((k) => `custom.${k}`);
  const ids = [...Object.keys(defaults), ...custom, ...overrides.flatMap((o) => o.properties.map((p) => p.id))].filter((id) => id !== 'custom');
  return new FieldConfigOptionsRegistry(() => [...new Set(ids)].map(plain));
}

// replaced puts the values of variables, rows and series into an address.
function replaced(values) {
  return (text, scoped) =>
    String(text ?? '').replace(/\$\{(.+?)(?::(\w+))?\}|\$(\w+)/g, (whole, path, format, name) => {
      const context = scoped?.__dataContext?.value;
      const encoded = (v) => (format === 'percentencode' ? encodeURIComponent(v) : String(v));
      if (path === '__url_time_range') {
        return `from=${range.from * 1000}&to=${range.to * 1000}`;
      }
      if (context && path?.startsWith('__data.fields.')) {
        const field = context.frame.fields.find((f) => getFieldDisplayName(f, context.frame) === path.slice('__data.fields.'.length));
        return field ? encoded(formattedValueToString(field.display(field.values[context.rowIndex]))) : whole;
      }
      if (context && path === '__value.raw') {
        return encoded(context.field.values[context.rowIndex]);
      }
      if (context && path?.startsWith('__field.labels.')) {
        return encoded(context.field.labels?.[path.slice('__field.labels.'.length)] ?? '');
      }
      const key = path ?? name;
      return key in values ? (format === 'queryparam' ? `var-${key}=${encodeURIComponent(values[key])}` : encoded(values[key])) : whole;
    });
}

async function load(prometheus, panel, values, theme) {
  let data = await frames(prometheus, panel, values);
  if (panel.transformations?.length && data.length) {
    data = await firstValueFrom(transformDataFrame(panel.transformations, data));
  }
  const shown = applyFieldOverrides({
    data, theme, fieldConfig: panel.fieldConfig, replaceVariables: replaced(values), fieldConfigRegistry: properties(panel), timeZone: 'utc',
  });
  cacheFieldDisplayNames(shown);
  return shown;
}

const timeRange = () => ({ from: toUtc(range.from * 1000), to: toUtc(range.to * 1000), raw: { from: 'now-1h', to: 'now' } });

const span = () => range.to - range.from;

// states returns the rows of a timeline. Merged values that are coloured by
// thresholds become the ranges of the thresholds, without words.
export function states(panel, data, theme) {
  return data.flatMap((frame) =>
    frame.fields.filter((f) => f.type === FieldType.number).map((field) => {
      const byRange = panel.options.mergeValues && field.config.color?.mode === 'thresholds';
      const steps = field.config.thresholds?.steps ?? [];
      const number = (v) => formattedValueToString(getValueFormat(field.config.unit ?? '')(v, field.config.decimals));
      const shown = (v) => {
        if (!byRange) {
          const d = field.display(v);
          return { text: formattedValueToString(d), colour: d.color };
        }
        const i = steps.findLastIndex((s) => v >= (s.value ?? -Infinity));
        const first = i === 0 && steps.length > 1;
        return { text: first ? `< ${number(steps[1].value)}` : `${number(steps[i].value ?? -Infinity)}+`, colour: theme.visualization.getColorByName(steps[i].color) };
      };
      const times = frame.fields[0].values.map((t) => t / 1000);
      const gaps = times.slice(1).map((t, i) => t - times[i]);
      const step = gaps.length > 0 ? Math.min(...gaps) : range.step;
      const parts = [];
      field.values.forEach((v, i) => {
        const is = shown(v);
        const last = parts.at(-1);
        if (last && last.text === is.text && times[i] - last.to <= 2 * step) {
          last.to = times[i] + step;
        } else {
          parts.push({ ...is, from: times[i], to: times[i] + step });
        }
      });
      return { name: getFieldDisplayName(field, frame, data), parts };
    })
  );
}

function Timeline({ panel, data, marks, theme, width, height }) {
  const rows = states(panel, data, theme);
  const line = (height - 8) / Math.max(1, rows.length);
  const at = (t) => 150 + ((Math.max(t, range.from) - range.from) / span()) * (width - 160);
  return (
    <div style={{ position: 'relative', height }}>
      {rows.map((row, i) => (
        <div key={i} style={{ position: 'absolute', top: i * line, height: line - 3, fontSize: 11, lineHeight: `${line - 3}px`, whiteSpace: 'nowrap' }}>
          {row.name}
          {row.parts.map((p, j) => (
            <div key={j} style={{ position: 'absolute', top: 0, left: at(p.from), width: Math.max(1, at(p.to) - at(p.from)), height: '100%', background: p.colour, overflow: 'hidden', color: theme.colors.getContrastText(p.colour) }}>{p.text}</div>
          ))}
        </div>
      ))}
      {marks.map((m, i) => (
        <div key={i} style={{ position: 'absolute', top: 0, left: at(m.from), width: Math.max(1, at(m.to) - at(m.from)), height, background: theme.visualization.getColorByName(m.colour), opacity: m.to > m.from ? 0.1 : 0.8 }} />
      ))}
    </div>
  );
}

// Marks draws annotations over a chart: a start as a line, a time as a region. Regions
// of several add up.
function Marks({ config, marks, theme }) {
  React.useLayoutEffect(() => {
    config.addHook('draw', (u) => {
      const { ctx, bbox } = u;
      ctx.save();
      for (const m of marks) {
        const [from, to] = [m.from, m.to].map((t) => Math.min(Math.max(u.valToPos(t * 1000, 'x', true), bbox.left), bbox.left + bbox.width));
        ctx.fillStyle = ctx.strokeStyle = theme.visualization.getColorByName(m.colour);
        ctx.setLineDash([5, 5]);
        ctx.beginPath();
        ctx.moveTo(from, bbox.top);
        ctx.lineTo(from, bbox.top + bbox.height);
        ctx.stroke();
        ctx.fillRect(from - 4, bbox.top + bbox.height, Math.max(8, to - from), 5);
        if (m.to > m.from) {
          ctx.globalAlpha = 0.1;
          ctx.fillRect(from, bbox.top, to - from, bbox.height);
          ctx.globalAlpha = 1;
        }
      }
      ctx.restore();
    });
  }, [config]);
  return null;
}

const displayed = (panel, data, values, theme) =>
  getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, data, theme, replaceVariables: replaced(values), timeZone: 'utc',
  });

function Numbers({ panel, data, values, theme, width, height }) {
  const shown = displayed(panel, data, values, theme);
  return (
    <div style={{ display: 'flex', flexWrap: 'wrap' }}>
      {shown.map((d, i) => {
        const value = { ...d.display, title: shown.length > 1 || panel.options.textMode?.includes('name') ? d.display.title : '' };
        return <BigValue key={i} width={width / shown.length} height={height} theme={theme} value={value} colorMode={panel.options.colorMode} graphMode="none" textMode={panel.options.textMode ?? 'auto'} />;
      })}
    </div>
  );
}

// message is the text that Grafana shows in place of a panel, or nothing.
export function message(panel, data) {
  const empty = data.every((f) => f.length === 0);
  switch (panel.type) {
    case 'stat':
      return undefined;
    case 'table': // an answer without a row has a header
      return data.some((f) => f.fields.length > 0) ? undefined : panel.fieldConfig.defaults.noValue;
    case 'state-timeline':
      return !empty ? undefined : data.length > 0 ? 'Data does not have a time field' : panel.fieldConfig.defaults.noValue;
    default:
      return empty ? panel.fieldConfig.defaults.noValue : undefined;
  }
}

// report is what a panel shows, for tests and as text beside the picture.
function report(panel, data, values, theme) {
  if (data[0]?.error) {
    return { error: String(data[0].error) };
  }
  const text = message(panel, data);
  if (text !== undefined) {
    return { text };
  }
  if (panel.type === 'state-timeline') {
    return { states: states(panel, data, theme) };
  }
  if (panel.type === 'stat') {
    return { values: displayed(panel, data, values, theme).map((d) => ({ name: d.display.title, text: formattedValueToString(d.display), colour: d.display.color })) };
  }
  return {
    fields: data.flatMap((f) => f.fields.map((x) => {
      const last = x.values.length - 1;
      const links = last >= 0 ? x.getLinks?.({ valueRowIndex: last }).map((l) => l.href) : undefined;
      const d = last >= 0 ? x.display?.(x.values[last]) : undefined;
      return { name: getFieldDisplayName(x, f, data), rows: x.values.length, last: d ? formattedValueToString(d) : '', colour: d?.color, links };
    })),
  };
}

function Inside({ panel, data, values, marks, theme, width, height }) {
  const text = message(panel, data);
  if (text !== undefined) {
    return <div style={{ padding: 16, opacity: 0.7, textAlign: 'center' }}>{text}</div>;
  }
  switch (panel.type) {
    case 'table':
      return <TableNG data={data[0]} timeRange={timeRange()} width={width} height={height} sortBy={panel.options.sortBy} cellHeight={panel.options.cellHeight} noHeader={false} getActions={() => []} structureRev={1} />;
    case 'timeseries':
      return (
        <TimeSeries frames={data} structureRev={1} timeRange={timeRange()} timeZone="utc" width={width} height={height} legend={panel.options.legend} options={panel.options}>
          {(config) => <Marks config={config} marks={marks} theme={theme} />}
        </TimeSeries>
      );
    case 'state-timeline':
      return <Timeline panel={panel} data={data} marks={marks} theme={theme} width={width} height={height} />;
    default:
      return <Numbers panel={panel} data={data} values={values} theme={theme} width={width} height={height} />;
  }
}

class Guard extends React.Component {
  state = {};
  static getDerivedStateFromError(error) {
    return { error };
  }
  render() {
    return this.state.error ? <pre style={{ color: 'red' }}>{String(this.state.error)}</pre> : this.props.children;
  }
}

export const cell = { width: 66, height: 38 };

// Panel is a panel in its place; drawn is called with what it shows.
export function Panel({ prometheus, panel, values, marks, theme, drawn }) {
  const [data, set] = React.useState();
  React.useEffect(() => {
    panel.type !== 'row' && load(prometheus, panel, values, theme).then(set, (e) => set([{ error: e, fields: [], length: 0 }]));
  }, []);
  React.useEffect(() => {
    data && drawn(panel.title, report(panel, data, values, theme));
  }, [data]);
  const g = panel.gridPos;
  const box = { position: 'absolute', left: g.x * cell.width, top: g.y * cell.height, width: g.w * cell.width - 8, height: g.h * cell.height - 8 };
  if (panel.type === 'row') {
    return <h4 style={box}>{panel.title}</h4>;
  }
  return (
    <div style={box}>
      <PanelChrome title={panel.title} description={panel.description} width={box.width} height={box.height}>
        {(width, height) => data && <Guard>{data[0]?.error ? String(data[0].error) : <Inside panel={panel} data={data} values={values} marks={marks} theme={theme} width={width} height={height} />}</Guard>}
      </PanelChrome>
    </div>
  );
}
