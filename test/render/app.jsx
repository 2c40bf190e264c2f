import React from 'react';
import { createRoot } from 'react-dom/client';
import { ThemeContext, createTheme } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { choose, range } from './query.js';
import { Panel, cell } from './panel.jsx';

// draw shows a dashboard and returns its height and what each panel shows.
window.draw = async (prometheus, dashboard, given, minutes) => {
  range.to = Math.floor(Date.now() / 1000);
  range.from = range.to - minutes * 60;
  range.step = Math.max(1, Math.round((minutes * 60) / 240));
  const theme = createTheme({ colors: { mode: 'dark' } });
  const values = await choose(prometheus, dashboard, given);
  const panels = dashboard.panels.filter((p) => !(p.type === 'row' && p.collapsed));
  const report = {};
  await new Promise((drawn) => {
    let left = panels.filter((p) => p.type !== 'row').length;
    const told = (title, data) => {
      report[title] = data.map((f) => f.error ? String(f.error) : f.fields.map((x) => [x.state?.displayName ?? x.name, x.values.length && x.display ? x.display(x.values[x.values.length - 1]).text : '']));
      --left || drawn();
    };
    createRoot(document.getElementById('root')).render(
      <ThemeContext.Provider value={theme}>
        <GlobalStyles />
        {panels.map((p) => <Panel key={p.id} prometheus={prometheus} panel={p} values={values} theme={theme} told={told} />)}
      </ThemeContext.Provider>
    );
  });
  return { height: Math.max(...panels.map((p) => (p.gridPos.y + p.gridPos.h) * cell.height)), values, report };
};
