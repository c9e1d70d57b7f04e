// The two parameters that act together most: a map of the objective that is to be expected at each
// pair of values, averaged over all other parameters, with the trials on it.
'use strict';

// The edges of cells round places that ascend or descend, in pixels; the outermost end with the chart.
function edges_round(pixels, low, high) {
  const ends = pixels[0] <= pixels[pixels.length - 1] ? [low, high] : [high, low];
  const between = pixels.slice(1).map((pixel, i) => (pixel + pixels[i]) / 2);
  return [ends[0], ...between, ends[1]];
}

let map_shown = null;  // {surface, axes, tone}

// Draws the map under the dots.
const kHeat = {
  id: 'heat',
  beforeDatasetsDraw(chart) {
    const {surface, axes, tone} = map_shown;
    const {ctx, chartArea: area, scales} = chart;
    const x = surface.firstValues.map((value) => scales.x.getPixelForValue(axes[0].place(value)));
    const y = surface.secondValues.map((value) => scales.y.getPixelForValue(axes[1].place(value)));
    const xs = edges_round(x, area.left, area.right);
    const ys = edges_round(y, area.top, area.bottom);
    ctx.save();
    surface.means.forEach((mean, at) => {
      const i = Math.floor(at / y.length);
      const j = at % y.length;
      ctx.fillStyle = shade(tone(mean));
      // Half a pixel more, so that no gap shows between neighbours.
      ctx.fillRect(xs[i], Math.min(ys[j], ys[j + 1]), xs[i + 1] - xs[i] + 0.5,
        Math.abs(ys[j + 1] - ys[j]) + 0.5);
    });
    ctx.restore();
  },
};

// Dots on the map: small and translucent where they are many.
function rings(points) {
  const many = points.length > kMany;
  const best = best_of(objective);
  const dot = (choose, color, more) => ({type: 'scatter', clip: 6, pointHoverRadius: 6,
    make: () => points.filter((point) => choose(point.trial)), pointRadius: many ? 1.6 : 3.5,
    pointBorderWidth: many ? 0 : 1, order: 3,
    ink: {pointBackgroundColor: color, pointBorderColor: () => colors.text}, ...more});
  return [
    dot((trial) => trial === best, () => colors.best, {pointRadius: 5, pointBorderWidth: 1.5, order: 1}),
    dot((trial) => trial !== best && is_selected(trial), () => (many ? colors.panel + '90' : colors.panel), {}),
    dot((trial) => trial !== best && !is_selected(trial), () => colors.panel + '50', {pointBorderWidth: 0, order: 4}),
  ];
}

function draw_together() {
  const section = document.getElementById('together');
  const surface = data.insights[objective].surface;
  const axes = [surface.first, surface.second].map((name) =>
    parameter_axis(study.parameters.find((parameter) => parameter.name === name)));
  const [low, high] = extent(surface.means);
  const maximize = study.objectives[objective].maximize;
  const tone = (mean) => {
    const share = high > low ? (mean - low) / (high - low) : 0.5;
    return maximize ? share : 1 - share;
  };
  document.getElementById('together-note').textContent = surface.first + ' and ' + surface.second +
    ' act together most (' + percent_text(surface.share) + ' of the variation beyond what each does ' +
    'alone). Expected ' + metric() + ', averaged over all other parameters: the bolder the better, ' +
    'from ' + number_text(maximize ? low : high) + ' to ' + number_text(maximize ? high : low) +
    '. A dot a trial.';
  const room = axes.map((axis) => (axis.labels ? 0.5 : 0));
  const points = trials
    .filter((trial) => has_value(trial, objective) && has_parameter(trial, surface.first) &&
      has_parameter(trial, surface.second))
    .map((trial) => ({
      x: axes[0].place(trial.parameters[surface.first]) + spread(trial.index, room[0]),
      y: axes[1].place(trial.parameters[surface.second]) + spread(trial.index + 7, room[1]),
      trial,
    }));
  const scales = {x: scale_of(axes[0], surface.first), y: scale_of(axes[1], surface.second)};
  map_shown = {surface, axes, tone};
  draw(section, {data: {datasets: rings(points)}, options: trial_options(scales), plugins: [kHeat]});
}
