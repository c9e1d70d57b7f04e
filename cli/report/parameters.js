// What parameters do to the objective: their importance, and the objective along each.
'use strict';

// Bars for what a parameter does alone and together with others, whiskers between trees.
function draw_importance() {
  const section = document.getElementById('importance');
  const insight = data.insights[objective];
  const note = document.getElementById('importance-note');
  const rows = [...(insight.importance ?? [])].sort((a, b) => b.total - a.total).slice(0, 20);
  const any = rows.some((row) => row.total > 0);
  importance_rows = rows;
  note.textContent = insight.why ? '' : 'Share of the variance of ' + metric() +
    ' that a parameter explains: alone (solid), with others (pale). A forest over ' +
    insight.trials + ' trials' + quality_text(insight.quality);
  document.getElementById('pairs').textContent = (insight.pairs ?? []).slice(0, 4).map((pair) =>
    pair.first + ' × ' + pair.second + ' ' + percent_text(pair.share)).join(' · ');
  section.querySelector('.plot').style.minHeight = Math.max(120, 54 + 26 * rows.length) + 'px';
  const together = rows.map((row) => Math.max(row.total - row.main, 0));
  const bars = {maxBarThickness: 34, categoryPercentage: 0.72, stack: 'shares'};
  const config = {
    type: 'bar',
    data: {
      labels: rows.map((row) => row.parameter),
      datasets: [
        {data: rows.map((row) => row.main), ink: {backgroundColor: () => colors.accent}, ...bars},
        {data: together, ink: {backgroundColor: () => colors.band}, ...bars},
      ],
    },
    options: {
      indexAxis: 'y',
      scales: {
        x: {stacked: true, min: 0, max: 1, grid: {color: () => colors.line, drawBorder: false},
          ticks: {callback: (value) => percent_text(value)}},
        y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false, color: () => colors.text}},
      },
      plugins: {
        legend: {display: false},
        tooltip: {displayColors: false, callbacks: {label: (item) => {
          const row = rows[item.dataIndex];
          return ['alone ' + percent_text(row.main), 'in all ' + percent_text(row.total) + ' ± ' +
            percent_text(row.deviation)];
        }}},
      },
    },
    plugins: [kWhiskers],
  };
  draw(section, any && config, insight.why ? sentence(insight.why) : 'All values are the same.');
}

function quality_text(quality) {
  if (quality <= 0) return '; it explains nothing of trials it has not seen, so this is a guess.';
  return '; it explains ' + percent_text(quality) + ' of trials it has not seen.';
}

/** @type {Importance[]} */
let importance_rows = [];  // that are drawn

const kWhiskers = {
  id: 'whiskers',
  afterDatasetsDraw(chart) {
    const context = chart.ctx;
    context.save();
    context.strokeStyle = colors.quiet;
    context.lineWidth = 1.2;
    importance_rows.forEach((row, i) => {
      const y = chart.scales.y.getPixelForValue(i);
      const ends = [row.total - row.deviation, row.total + row.deviation].map((share) =>
        chart.scales.x.getPixelForValue(Math.min(Math.max(share, 0), 1)));
      context.beginPath();
      context.moveTo(ends[0], y);
      context.lineTo(ends[1], y);
      context.stroke();
    });
    context.restore();
  },
};

/** @param {Parameter} parameter */
function dependence_datasets(parameter, axis, values) {
  const found = own(data.insights[objective].dependence, parameter.name);
  if (!found) return [];
  const at = (i, shift) => ({
    x: axis.place(found.values[i]),
    y: values.clamp(found.means[i] + shift * found.deviations[i]),
  });
  const line = (shift, more) => ({type: 'line', data: found.values.map((_, i) => at(i, shift)),
    pointRadius: 0, pointHitRadius: 0, borderWidth: 0, tension: 0.25, order: 25, ...more});
  if (axis.labels) {
    const bar = found.values.map((_, i) => [at(i, -1), at(i, 1)]).flatMap(([low, high]) =>
      [low, high, {x: NaN, y: NaN}]);
    return [
      {...line(0, {}), showLine: false, pointRadius: 14, pointStyle: 'line', order: 1,
        pointBorderWidth: 2.5, ink: {pointBorderColor: () => colors.best}},
      {...line(0, {}), data: bar, spanGaps: false, borderWidth: 28, ink: {borderColor: () => colors.band}},
    ];
  }
  return [
    line(0, {ink: {borderColor: () => colors.best}, borderWidth: 2.2, order: 1}),
    line(-1, {ink: {backgroundColor: () => colors.band}, fill: '+1'}),
    line(1, {}),
  ];
}

// A stopped trial's value is of an early step: no match for results, so it is shown on request.
/** @param {TrialRow} trial */
function is_drawn(trial) {
  return document.getElementById('with-stopped').checked || kind_of(trial) === 'Completed' ||
    study.counts.completed === 0;
}

// The trials that are drawn, and the axis that all small charts share.
const drawn_values = kept(() => {
  const valued = trials.filter((trial) => has_value(trial, objective) && is_drawn(trial));
  const values = valued.map((trial) => trial.values[objective]);
  const expected = Object.values(data.insights[objective].dependence ?? {}).flatMap((found) => found.means);
  return {valued, values, axis: value_axis(values, objective, expected)};
});

const parameter_boxes = new Map();  // name to element

/** @param {Parameter} parameter */
function add_parameter_box(parameter) {
  const box = document.createElement('div');
  const head = box.appendChild(document.createElement('h3'));
  head.textContent = parameter.name + ' ';
  if (parameter.when) {
    head.appendChild(document.createElement('span')).textContent = 'where ' +
      parameter.when.parameter + ' is ' + parameter.when.in.map(value_text).join(', ');
  }
  box.appendChild(document.createElement('div')).className = 'plot';
  parameter_boxes.set(parameter.name, box);
  chart_view(box, {parts: ['insights'], draw: () => draw_parameter(box, parameter),
    is_of: (trial) => has_value(trial, objective) && is_drawn(trial)});
  return box;
}

// One small chart a parameter, the important ones first.
function draw_parameters() {
  const place = document.getElementById('dependence');
  const total = new Map((data.insights[objective].importance ?? []).map((row) => [row.parameter, row.total]));
  const ordered = [...study.parameters].sort((a, b) =>
    (total.get(b.name) ?? 0) - (total.get(a.name) ?? 0)).slice(0, 24);
  const {axis, values} = drawn_values(objective);
  say(document.getElementById('parameters'), beyond_text([{axis, values}]));
  const boxes = ordered.map((parameter) => parameter_boxes.get(parameter.name) ?? add_parameter_box(parameter));
  boxes.forEach((box, i) => {
    if (place.children[i] !== box) place.insertBefore(box, place.children[i] ?? null);
  });
  while (place.children.length > boxes.length) drop_parameter_box(place.lastElementChild);
}

function drop_parameter_box(box) {
  for (const [name, each] of parameter_boxes) if (each === box) parameter_boxes.delete(name);
  drop_charts(box);
  remove_view(box);
  box.remove();
}

// Stopped trials come or go.
function redraw_parameters() {
  ++version;
  draw_soon(document.getElementById('parameters'));
  for (const box of parameter_boxes.values()) draw_soon(box);
}

/** @param {Parameter} parameter */
function draw_parameter(box, parameter) {
  box.dataset.says = 'Values of ' + metric() + ' along ' + parameter.name;
  const {axis, valued} = drawn_values(objective);
  const along = parameter_axis(parameter);
  const room = along.labels ? 0.5 : 0;
  const points = valued.filter((trial) => has_parameter(trial, parameter.name)).map((trial) => ({
    x: along.place(trial.parameters[parameter.name]) + spread(trial.index, room),
    y: axis.clamp(trial.values[objective]),
    trial,
    turn: turn_of(trial.values[objective], axis, true),
  }));
  const datasets = [
    ...dependence_datasets(parameter, along, axis),
    ...dots(points, {radius: points.length > kMany ? 1.5 : 2.6}),
  ];
  // All plots of the row have the same area, whatever their labels.
  const scales = {x: scale_of(along, '', {afterFit: (scale) => (scale.height = 28)}),
    y: scale_of(axis, '', {afterFit: (scale) => (scale.width = 50)})};
  draw(box, points.length > 0 && {data: {datasets}, options: trial_options(scales)},
    valued.length > 0 ? 'No trial with a value has it.' : 'No trial has a value yet.');
}
