// Asking Prometheus, and what Grafana's data source makes of the answer.
import { FieldType, toDataFrame } from '@grafana/data';

export const range = { from: 0, to: 0, step: 15 };

const seconds = { s: 1, m: 60, h: 3600 };

// duration is that of a text as 15s, or nothing.
const duration = (text) => (/^\d+[smh]$/.test(text) ? parseInt(text) * seconds[text.at(-1)] : undefined);

export function expand(text, values) {
  return text.replace(/\$(\w+)/g, (whole, name) => (name in values ? values[name] : whole));
}

export async function ask(prometheus, path, params) {
  const answer = await fetch(`${prometheus}/api/v1/${path}?${new URLSearchParams(params)}`).then((r) => r.json());
  if (answer.status !== 'success') {
    throw new Error(answer.error);
  }
  return answer.data;
}

const legend = (target, metric) =>
  target.legendFormat ? target.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, l) => metric[l] ?? '').trim() : 'Value';

function table(target, result, single) {
  const labels = [...new Set(result.flatMap((s) => Object.keys(s.metric)))].sort();
  const value = single ? 'Value' : `Value #${target.refId}`;
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: result.map((s) => s.value[0] * 1000) },
      ...labels.map((l) => ({ name: l, type: FieldType.string, values: result.map((s) => s.metric[l] ?? '') })),
      { name: value, type: FieldType.number, values: result.map((s) => Number(s.value[1])) },
    ],
  });
}

function series(target, s) {
  const points = s.values ?? [s.value];
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: points.map((p) => p[0] * 1000) },
      { name: 'Value', type: FieldType.number, labels: s.metric, config: { displayNameFromDS: legend(target, s.metric) }, values: points.map((p) => Number(p[1])) },
    ],
  });
}

// frames returns the answers to all queries of a panel as data frames.
export async function frames(prometheus, panel, values) {
  const all = [];
  for (const target of panel.targets ?? []) {
    const scrape = duration(expand(target.interval ?? '', values)) ?? 15;
    const step = Math.max(range.step, scrape, duration(panel.interval) ?? 0);
    const query = expand(target.expr, { ...values, __interval: `${step}s`, __rate_interval: `${Math.max(step + scrape, 4 * scrape)}s` });
    const data = target.instant
      ? await ask(prometheus, 'query', { query, time: range.to })
      : await ask(prometheus, 'query_range', { query, start: range.from, end: range.to, step });
    if (target.format === 'table') {
      all.push(table(target, data.result, panel.targets.length === 1));
    } else if (data.result.length === 0) {
      all.push(toDataFrame({ refId: target.refId, fields: [] }));
    } else {
      all.push(...data.result.map((s) => series(target, s)));
    }
  }
  return all;
}

// events returns what annotations mark: of each series the times at which it is above
// 0, those of neighbouring steps as one region; or the times that are its values.
export async function events(prometheus, dashboard, values) {
  const all = [];
  for (const a of dashboard.annotations?.list ?? []) {
    if (!a.enable || !a.target?.expr) {
      continue;
    }
    const step = duration(a.target.interval) ?? 60;
    const start = Math.floor(range.from / step) * step;
    const data = await ask(prometheus, 'query_range', { query: expand(a.target.expr, values), start, end: range.to, step });
    for (const s of data.result) {
      const times = a.useValueForTime ? new Set(s.values.map((p) => Number(p[1]) / 1000)) : s.values.filter((p) => Number(p[1]) > 0).map((p) => p[0]);
      let last;
      for (const time of times) {
        if (last && !a.useValueForTime && time - last.to <= step) {
          last.to = time;
        } else {
          all.push((last = { name: a.name, colour: a.iconColor, from: time, to: time }));
        }
      }
    }
  }
  return all.filter((e) => e.to >= range.from && e.from <= range.to);
}

// choose sets every variable to its first value, or to all, unless it is given.
export async function choose(prometheus, dashboard, given) {
  const span = range.to - range.from;
  const values = { __range: `${span}s`, __range_s: String(span), __interval: `${range.step}s`, datasource: '' };
  for (const v of dashboard.templating.list.filter((v) => v.type === 'query')) {
    const query = expand(v.query.query, values);
    let found;
    const labels = query.match(/^label_values\((.+), (\w+)\)$/);
    if (labels) {
      found = await ask(prometheus, `label/${labels[2]}/values`, { 'match[]': labels[1] });
    } else {
      const data = await ask(prometheus, 'query', { query: query.slice('query_result('.length, -1), time: range.to });
      const text = data.result.map((s) => '{' + Object.keys(s.metric).sort().map((k) => `${k}="${s.metric[k]}"`).join(',') + '}');
      const matches = text.map((t) => t.match(new RegExp(v.regex.slice(1, -1)))).filter(Boolean);
      found = matches.map((m) => m.groups?.value ?? m[1]);
    }
    values[v.name] = given[v.name] ?? v.allValue ?? (v.multi ? `(${found.join('|')})` : found[0]) ?? '';
  }
  return values;
}
