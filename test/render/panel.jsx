// Panels drawn with Grafana's components, as far as they are published. State
// timelines are not: a stand-in shows their words and colours.
import React from 'react';
import {
  FieldConfigOptionsRegistry, applyFieldOverrides, cacheFieldDisplayNames, getFieldDisplayName, getFieldDisplayValues,
  standardTransformers, standardTransformersRegistry, toUtc, transformDataFrame,
} from '@grafana/data';
import { BarGauge, BigValue, PanelChrome, TimeSeries } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { firstValueFrom } from 'rxjs';
import { frames, range } from './query.js';

standardTransformersRegistry.setInit(() =>
  ['mergeTransformer', 'organizeFieldsTransformer', 'groupingToMatrixTransformer'].map((name) => {
    const transformation = standardTransformers[name];
    return { id: transformation.id, name, transformation: async () => transformation };
  })
);

const plain = (id) => ({ id, path: id.replace(/^custom\./, ''), isCustom: id.startsWith('custom.'), process: (v) => v, shouldApply: () => true });
export const properties = new FieldConfigOptionsRegistry(() =>
  ['unit', 'min', 'max', 'decimals', 'mappings', 'thresholds', 'color', 'links', 'noValue', 'displayName',
    'custom.drawStyle', 'custom.lineWidth', 'custom.showPoints', 'custom.pointSize', 'custom.spanNulls', 'custom.thresholdsStyle', 'custom.barMaxWidth', 'custom.align', 'custom.lineStyle', 'custom.fillOpacity', 'custom.stacking', 'custom.width', 'custom.minWidth', 'custom.hidden', 'custom.hideFrom', 'custom.cellOptions',
  ].map(plain)
);

async function load(prometheus, panel, values, theme) {
  let data = await frames(prometheus, panel, values);
  if (panel.transformations?.length && data.length) {
    data = await firstValueFrom(transformDataFrame(panel.transformations, data));
  }
  const shown = applyFieldOverrides({
    data, theme, fieldConfig: panel.fieldConfig, replaceVariables: (s) => s, fieldConfigRegistry: properties, timeZone: 'utc',
  });
  cacheFieldDisplayNames(shown);
  return shown;
}

const timeRange = () => ({ from: toUtc(range.from * 1000), to: toUtc(range.to * 1000), raw: { from: 'now-1h', to: 'now' } });

function Timeline({ data, theme, width, height }) {
  const line = (height - 8) / Math.max(1, data.length);
  const span = range.to - range.from;
  return data.map((frame, i) => {
    const field = frame.fields[1];
    return (
      <div key={i} style={{ display: 'flex', height: line, fontSize: 11 }}>
        <div style={{ width: 150, overflow: 'hidden', whiteSpace: 'nowrap' }}>{getFieldDisplayName(field, frame, data)}</div>
        <div style={{ position: 'relative', width: width - 160 }}>
          {field.values.map((v, j) => {
            const from = (frame.fields[0].values[j] / 1000 - range.from) / span;
            return <div key={j} style={{ position: 'absolute', left: from * (width - 160), width: (width - 160) * (range.step / span) + 1, height: line - 3, background: field.display(v).color }} />;
          })}
        </div>
      </div>
    );
  });
}

function Numbers({ panel, data, theme, width, height }) {
  const shown = getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, data, theme, replaceVariables: (s) => s, timeZone: 'utc',
  });
  const each = panel.type === 'bargauge' ? { width, height: Math.min(40, height / shown.length) } : { width: width / shown.length, height };
  return (
    <div style={{ display: 'flex', flexWrap: 'wrap' }}>
      {shown.map((d, i) => {
        const value = { ...d.display, title: shown.length > 1 || panel.options.textMode?.includes('name') ? d.display.title : '' };
        return panel.type === 'bargauge'
          ? <BarGauge key={i} {...each} theme={theme} field={d.field} value={value} display={d.view?.getFieldDisplayProcessor?.(d.colIndex)} orientation="horizontal" displayMode="basic" valueDisplayMode="color" namePlacement="left" />
          : <BigValue key={i} {...each} theme={theme} value={value} colorMode={panel.options.colorMode} graphMode="none" textMode={panel.options.textMode} />;
      })}
    </div>
  );
}

function Inside({ panel, data, theme, width, height }) {
  const rows = data.reduce((n, f) => n + f.length, 0);
  if (rows === 0) {
    return <div style={{ padding: 16, opacity: 0.7, textAlign: 'center' }}>{panel.fieldConfig.defaults.noValue}</div>;
  }
  switch (panel.type) {
    case 'table':
      return <TableNG data={data[0]} width={width} height={height} sortBy={panel.options.sortBy} cellHeight="sm" noHeader={false} getActions={() => []} structureRev={1} />;
    case 'timeseries':
      return <TimeSeries frames={data} structureRev={1} timeRange={timeRange()} timeZone="utc" width={width} height={height} legend={panel.options.legend} options={panel.options} />;
    case 'state-timeline':
      return <Timeline data={data} theme={theme} width={width} height={height} />;
    default:
      return <Numbers panel={panel} data={data} theme={theme} width={width} height={height} />;
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

// Panel is a panel in its place; told hears when it is drawn.
export function Panel({ prometheus, panel, values, theme, told }) {
  const [data, set] = React.useState();
  React.useEffect(() => {
    load(prometheus, panel, values, theme).then(set, (e) => set([{ error: e, fields: [], length: 0 }]));
  }, []);
  React.useEffect(() => {
    data && told(panel.title, data);
  }, [data]);
  const g = panel.gridPos;
  const box = { position: 'absolute', left: g.x * cell.width, top: g.y * cell.height, width: g.w * cell.width - 8, height: g.h * cell.height - 8 };
  if (panel.type === 'row') {
    return <h4 style={box}>{panel.title}</h4>;
  }
  return (
    <div style={box}>
      <PanelChrome title={panel.title} description={panel.description} width={box.width} height={box.height}>
        {(width, height) => data && <Guard>{data[0]?.error ? String(data[0].error) : <Inside panel={panel} data={data} theme={theme} width={width} height={height} />}</Guard>}
      </PanelChrome>
    </div>
  );
}
