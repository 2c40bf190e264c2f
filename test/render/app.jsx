import React from 'react';
import { createRoot } from 'react-dom/client';
import { ThemeContext, createTheme, locationUtil } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { choose, events, range } from './query.js';
import { Panel, cell } from './panel.jsx';

// arranged is the panels of open rows, and the titles of the others, without gaps.
function arranged(panels, open) {
  const all = panels.slice(0, panels.findIndex((p) => p.type === 'row') + 1 ? 0 : undefined);
  let y = 0;
  panels.forEach((p, i) => {
    if (p.type !== 'row') {
      return;
    }
    all.push({ ...p, gridPos: { ...p.gridPos, y } });
    y += 1;
    const next = panels.findIndex((q, j) => j > i && q.type === 'row');
    const inside = p.collapsed ? p.panels : panels.slice(i + 1, next < 0 ? undefined : next);
    if (open(p)) {
      const end = Math.max(...inside.map((q) => q.gridPos.y + q.gridPos.h));
      all.push(...inside.map((q) => ({ ...q, gridPos: { ...q.gridPos, y: q.gridPos.y - p.gridPos.y - 1 + y } })));
      y += end - p.gridPos.y - 1;
    }
  });
  return all;
}

// draw shows a dashboard and returns its height and what each panel shows.
window.draw = async (prometheus, dashboard, given, minutes, mode = 'dark', unfold, end) => {
  cell.width = Math.floor((window.innerWidth - 16) / 24);
  locationUtil.initialize({ config: { appSubUrl: '' }, getVariablesUrlParams: () => ({}), getTimeRangeForUrl: () => ({}) });
  range.to = end ?? Math.floor(Date.now() / 1000);
  range.from = range.to - minutes * 60;
  range.step = Math.max(1, Math.round((minutes * 60) / 240));
  const theme = createTheme({ colors: { mode } });
  document.body.style.background = theme.colors.background.canvas;
  document.body.style.color = theme.colors.text.primary;
  const values = await choose(prometheus, dashboard, given);
  const marks = await events(prometheus, dashboard, values);
  const panels = arranged(dashboard.panels, (row) => !row.collapsed || (unfold && new RegExp(unfold).test(row.title)));
  const report = {};
  await new Promise((drawn) => {
    let left = panels.filter((p) => p.type !== 'row').length;
    const shows = (title, shown) => {
      report[title] = shown;
      --left || drawn();
    };
    left || drawn();
    createRoot(document.getElementById('root')).render(
      <ThemeContext.Provider value={theme}>
        <GlobalStyles />
        {panels.map((p) => <Panel key={p.id} prometheus={prometheus} panel={p} values={values} marks={marks} theme={theme} drawn={shows} />)}
      </ThemeContext.Provider>
    );
  });
  return { height: Math.max(...panels.map((p) => (p.gridPos.y + p.gridPos.h) * cell.height)), values, marks, report };
};
