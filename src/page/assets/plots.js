"use strict";
// Draws the plots of the page's data, each when it comes into view, in the colours of the page.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();
  const chosen = {};
  const phone = function () { return window.innerWidth < 640; };
  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }
  function look() {
    return {
      ink: colour("--ink"), soft: colour("--soft"), line: colour("--line"), card: colour("--card"), shade: colour("--shade"),
      bad: colour("--bad"), warn: colour("--warn"), good: colour("--good"), accent: colour("--accent"),
      cold: dark.matches ? "#4aa3ff" : "#2f7fd6", none: dark.matches ? "#232b35" : "#f2f3f5",
      mild: dark.matches ? "#b3852b" : "#f7c66b", hot: dark.matches ? "#ff7b72" : "#cf2a1f", worst: dark.matches ? "#ffd0cc" : "#6d0f0a"
    };
  }
  // Texts of tooltips come from the job: they are escaped, for ECharts takes them as markup.
  function safe(text) {
    const box = document.createElement("div");
    box.textContent = String(text);
    return box.innerHTML.replace(/"/g, "&quot;");
  }
  function time(seconds) {
    if (seconds === null || seconds === undefined || !isFinite(seconds)) return "?";
    const size = Math.abs(seconds);
    if (size >= 100) return seconds.toFixed(0) + " s";
    if (size >= 0.1) return seconds.toFixed(2) + " s";
    if (size >= 0.0001) return (1000 * seconds).toFixed(2) + " ms";
    return size === 0 ? "0 s" : (1e6 * seconds).toFixed(1) + " us";
  }
  function factor(thousandths) { return (thousandths / 1000).toFixed(2) + " x"; }
  function short(text, most) { return text.length > most ? text.slice(0, most - 1) + "\u2026" : text; }
  function base(l) {
    return {
      animation: false, backgroundColor: "transparent",
      textStyle: { color: l.ink, fontFamily: getComputedStyle(document.body).fontFamily },
      tooltip: { confine: true, backgroundColor: l.card, borderColor: l.line, textStyle: { color: l.ink, fontSize: 12 } },
      aria: { enabled: true }
    };
  }
  function axis(l, more) {
    return Object.assign({
      axisLine: { lineStyle: { color: l.line } }, axisTick: { lineStyle: { color: l.line } },
      axisLabel: { color: l.soft, fontSize: 11, hideOverlap: true }, splitLine: { lineStyle: { color: l.line, opacity: 0.6 } },
      nameTextStyle: { color: l.soft, fontSize: 11 }
    }, more);
  }
  function labelWidth(names) {
    const longest = names.reduce(function (most, name) { return Math.max(most, Math.min(name.length, phone() ? 12 : 24)); }, 3);
    return 10 + 6.6 * longest;
  }
  function names(l, list, more) {
    const most = phone() ? 12 : 24;
    return axis(l, Object.assign({
      type: "category", data: list, inverse: true, splitLine: { show: false },
      axisLabel: { color: l.soft, fontSize: 11, formatter: function (name) { return short(name, most); } }
    }, more));
  }
  function slider(l, axisIndex, end) {
    return [
      { type: "slider", yAxisIndex: axisIndex, right: 2, width: 14, startValue: 0, endValue: end, brushSelect: false, showDetail: false,
        borderColor: l.line, fillerColor: l.shade, handleStyle: { color: l.soft }, dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } }, selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } },
      { type: "inside", yAxisIndex: axisIndex, startValue: 0, endValue: end, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, moveOnMouseMove: false }
    ];
  }
  function along(l) {
    return [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseMove: false },
      { type: "slider", xAxisIndex: 0, bottom: 4, height: 14, brushSelect: false, showDetail: false, borderColor: l.line, fillerColor: l.shade, handleStyle: { color: l.soft }, dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } }, selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } }];
  }
  function shades(l, most) {
    // Equal to the peers lies at the neutral colour, whatever the ends are.
    const top = Math.max(1200, Math.min(most, 3000)), low = 900;
    const at = function (value) { return (value - low) / (top - low); };
    const stops = 40, colours = [];
    const from = [l.cold, l.none, l.mild, l.hot, l.worst], places = [0, at(1000), at(1000) + 0.25 * (1 - at(1000)), at(1000) + 0.6 * (1 - at(1000)), 1];
    for (let i = 0; i <= stops; i++) {
      const x = i / stops;
      let k = 1;
      while (k < places.length - 1 && x > places[k]) k++;
      colours.push(mix(from[k - 1], from[k], (x - places[k - 1]) / (places[k] - places[k - 1])));
    }
    return { min: low, max: top, colours: colours };
  }
  function mix(a, b, share) {
    const part = function (text, i) { return parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16); };
    let out = "#";
    for (let i = 0; i < 3; i++) out += Math.round(part(a, i) + (part(b, i) - part(a, i)) * Math.max(0, Math.min(1, share))).toString(16).padStart(2, "0");
    return out;
  }
  function visual(l, most, extra) {
    const s = shades(l, most);
    return Object.assign({
      type: "continuous", min: s.min, max: s.max, dimension: 2, calculable: false, orient: "horizontal", left: "center", top: 0, itemWidth: 10, itemHeight: phone() ? 120 : 220,
      text: [(s.max / 1000).toFixed(1) + " x or more", "0.9 x the peers"], textStyle: { color: l.soft, fontSize: 11 }, inRange: { color: s.colours }
    }, extra);
  }
  const plots = {
    heat: function (l) {
      const view = data.heat[chosen.heat || 0];
      const cells = [];
      let most = 1000;
      view.cells.forEach(function (row, y) {
        row.forEach(function (excess, x) {
          if (excess === null) return;
          cells.push([x, y, 1000 + excess]);
          if (1000 + excess > most) most = 1000 + excess;
        });
      });
      const rows = view.rows.length, shown = Math.min(rows, 40);
      return Object.assign(base(l), {
        grid: { left: labelWidth(view.rows), right: rows > shown ? 26 : 10, top: 42, bottom: 62 },
        xAxis: axis(l, { type: "category", data: view.columns, name: "iteration", nameLocation: "middle", nameGap: 24, splitLine: { show: false } }),
        yAxis: names(l, view.rows, { axisLabel: { fontSize: 11, formatter: function (name) { return short(name, phone() ? 12 : 24); }, color: function (name, at) { return view.marked[at] ? l.bad : l.soft; } } }),
        visualMap: visual(l, most),
        dataZoom: along(l).concat(rows > shown ? slider(l, 0, shown - 1) : []),
        tooltip: Object.assign(base(l).tooltip, { formatter: function (item) {
          return safe(view.rows[item.value[1]]) + "<br>iteration " + view.columns[item.value[0]] + (data.together > 1 ? " and those after it" : "") + "<br><b>" + factor(item.value[2]) + "</b> its peers' time";
        } }),
        series: [{ type: "heatmap", data: cells, progressive: 20000, emphasis: { itemStyle: { borderColor: l.ink, borderWidth: 1 } } }]
      });
    },
    grid: function (l) {
      const grid = data.grid, kind = chosen.grid || 0;
      const cells = (kind === 0 ? grid.factors : grid.costs).map(function (cell) { return [cell[1], cell[0], cell[2], cell[3]]; });
      let most = cells.reduce(function (most, cell) { return Math.max(most, cell[2]); }, kind === 0 ? 1000 : 0.001);
      const scale = kind === 0 ? visual(l, most) : {
        type: "continuous", min: 0, max: most, dimension: 2, calculable: false, orient: "horizontal", left: "center", top: 0, itemWidth: 10, itemHeight: phone() ? 120 : 220,
        text: [time(most), "0 s"], textStyle: { color: l.soft, fontSize: 11 }, inRange: { color: [l.none, l.mild, l.hot, l.worst] }
      };
      const replicas = [], stages = [];
      for (let i = 0; i < grid.replicas; i++) replicas.push("" + i);
      for (let i = 0; i < grid.stages; i++) stages.push("stage " + i);
      const many = grid.replicas > 64;
      return Object.assign(base(l), {
        grid: { left: labelWidth(stages), right: 10, top: 42, bottom: many ? 62 : 42 },
        xAxis: axis(l, { type: "category", data: replicas, name: "replica (pipeline)", nameLocation: "middle", nameGap: 24, splitLine: { show: false } }),
        yAxis: names(l, stages, {}),
        visualMap: scale,
        // Of very many replicas those around the worst one are in view first.
        dataZoom: many ? along(l).map(function (zoom) {
          if (grid.replicas <= 256) return zoom;
          const worst = cells.reduce(function (a, b) { return b[2] > a[2] ? b : a; });
          const first = Math.max(0, Math.min(worst[0] - 64, grid.replicas - 128));
          return Object.assign(zoom, { startValue: first, endValue: first + 127 });
        }) : [],
        tooltip: Object.assign(base(l).tooltip, { formatter: function (item) {
          const value = kind === 0 ? factor(item.value[2]) + " its peers' time" : time(item.value[2]) + " of the window";
          return "stage " + item.value[1] + ", replica " + item.value[0] + "<br>" + safe(item.value[3]) + "<br><b>" + value + "</b>";
        } }),
        series: [{ type: "heatmap", data: cells, progressive: 20000, itemStyle: { borderColor: l.card, borderWidth: many ? 0 : 1 } }]
      });
    },
    steps: function (l) {
      const steps = data.steps;
      const points = steps.iterations.map(function (iteration, at) { return [iteration, steps.seconds[at]]; });
      const areas = steps.windows.map(function (window) { return [{ xAxis: window[0], itemStyle: { color: l.bad, opacity: 0.14 } }, { xAxis: window[1] }]; });
      const marks = steps.stalls.map(function (stall) { return { xAxis: stall[0], label: { formatter: "stall", color: l.warn }, lineStyle: { color: l.warn } }; })
        .concat(steps.restarts.map(function (at) { return { xAxis: at, label: { formatter: "restart", color: l.accent }, lineStyle: { color: l.accent } }; }))
        .concat(steps.begins.map(function (at) { return { xAxis: at, label: { formatter: "fault begins", color: l.bad }, lineStyle: { color: l.bad } }; }));
      const lines = steps.baseline === null ? [] : [{ yAxis: steps.baseline, label: { formatter: "usual", color: l.soft, position: "insideEndTop" }, lineStyle: { color: l.soft } }];
      return Object.assign(base(l), {
        grid: { left: 54, right: 18, top: 26, bottom: 62 },
        xAxis: axis(l, { type: "value", min: "dataMin", max: "dataMax", name: "iteration", nameLocation: "middle", nameGap: 24, splitLine: { show: false }, minInterval: 1 }),
        yAxis: axis(l, { type: "value", scale: true, axisLabel: { color: l.soft, fontSize: 11, formatter: function (value) { return time(value); } } }),
        dataZoom: along(l),
        tooltip: Object.assign(base(l).tooltip, { trigger: "axis", formatter: function (items) {
          const at = items[0].dataIndex;
          return "iteration " + steps.iterations[at] + (steps.times[at] ? "<br>" + safe(steps.times[at]) : "") + "<br><b>" + time(steps.seconds[at]) + "</b>";
        } }),
        series: [{ type: "line", data: points, showSymbol: points.length < 60, symbolSize: 4, lineStyle: { width: 1.4, color: l.accent }, itemStyle: { color: l.accent },
          markArea: { silent: true, data: areas }, markLine: { silent: true, symbol: "none", label: { fontSize: 10 }, data: marks.concat(lines) } }]
      });
    },
    timers: function (l) {
      const strips = data.timers;
      // The compared timers choose the scale: those of transfers lie ten times apart on any job.
      let low = 0.9, high = 1.2;
      for (const p of strips.points) {
        if (strips.compared > 0 && p[0] >= strips.compared) continue;
        low = Math.min(low, p[1] / 1000 - 0.05);
        high = Math.max(high, p[1] / 1000 + 0.05);
      }
      low = Math.max(0, Math.floor(10 * Math.max(low, 0.3)) / 10);
      high = Math.ceil(10 * Math.min(high, 4)) / 10;
      const point = function (wanted) { return strips.points.filter(function (p) { return p[4] === wanted; }).map(function (p) { return { value: [Math.max(low, Math.min(high, p[1] / 1000)), p[0], p[2], p[3], p[5], p[1] / 1000] }; }); };
      // A little jitter parts points that lie on each other: by number of the rank, so that it is always the same.
      const series = function (name, points, tint, size, opacity, z) {
        return { name: name, type: "custom", progressive: 0, z: z, data: points, encode: { x: 0, y: 1 }, clip: true, itemStyle: { color: tint, opacity: opacity },
          renderItem: function (params, api) {
            const at = api.coord([api.value(0), api.value(1)]), band = api.size([0, 1])[1];
            const shift = ((api.value(3) * 0.61803) % 1 - 0.5) * band * 0.55;
            return { type: "circle", shape: { cx: at[0], cy: at[1] + shift, r: size }, style: { fill: tint, opacity: opacity } };
          } };
      };
      return Object.assign(base(l), {
        legend: { top: 0, right: 0, textStyle: { color: l.soft, fontSize: 11 }, data: [{ name: "named", icon: "circle" }, { name: "other ranks", icon: "circle" }] },
        grid: { left: labelWidth(strips.names), right: 18, top: 30, bottom: 42 },
        xAxis: axis(l, { type: "value", min: low, max: high, name: "mean over the stage's median", nameLocation: "middle", nameGap: 26, axisLabel: { color: l.soft, fontSize: 11, hideOverlap: true, formatter: function (value) { return value + " x"; } } }),
        yAxis: names(l, strips.names, {}),
        dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseMove: false }],
        tooltip: Object.assign(base(l).tooltip, { formatter: function (item) {
          const v = item.value;
          return "rank " + v[3] + " on " + safe(v[4] === undefined ? "" : strips.nodes[v[4]]) + "<br>" + safe(strips.names[v[1]]) + "<br><b>" + time(v[2]) + "</b> an iteration, " + v[5].toFixed(2) + " x its stage's median";
        } }),
        series: [series("other ranks", point(0), l.soft, phone() ? 2 : 2.5, 0.45, 2), series("named", point(1), l.bad, phone() ? 3.5 : 4.5, 0.95, 3)]
      });
    },
    votes: function (l) {
      const votes = data.votes;
      const cells = [];
      votes.cells.forEach(function (row, y) { row.forEach(function (slow, x) { cells.push([x, y, slow]); }); });
      const shown = Math.min(votes.rows.length, 30);
      return Object.assign(base(l), {
        grid: { left: labelWidth(votes.rows), right: votes.rows.length > shown ? 26 : 10, top: 8, bottom: phone() ? 70 : 30 },
        xAxis: axis(l, { type: "category", data: votes.algorithms, splitLine: { show: false }, axisLabel: { color: l.soft, fontSize: 11, interval: 0, rotate: phone() ? 50 : 0 } }),
        yAxis: names(l, votes.rows, {}),
        visualMap: { show: false, min: 0, max: 1, dimension: 2, inRange: { color: [l.none, l.hot] } },
        dataZoom: votes.rows.length > shown ? slider(l, 0, shown - 1) : [],
        tooltip: Object.assign(base(l).tooltip, { formatter: function (item) {
          return safe(votes.rows[item.value[1]]) + "<br>" + safe(votes.algorithms[item.value[0]]) + ": <b>" + (item.value[2] ? "slow" : "fast") + "</b>";
        } }),
        series: [{ type: "heatmap", data: cells, itemStyle: { borderColor: l.card, borderWidth: 2 } }]
      });
    },
    waits: function (l) {
      const waits = data.waits, shown = Math.min(waits.rows.length, 32);
      const bar = function (name, values, tint) { return { name: name, type: "bar", stack: "all", data: values, itemStyle: { color: tint }, barCategoryGap: "25%" }; };
      return Object.assign(base(l), {
        legend: { top: 0, left: "center", textStyle: { color: l.soft, fontSize: 11 } },
        grid: { left: labelWidth(waits.rows), right: waits.rows.length > shown ? 26 : 18, top: 30, bottom: 30 },
        xAxis: axis(l, { type: "value", axisLabel: { color: l.soft, fontSize: 11, hideOverlap: true, formatter: function (value) { return time(value); } } }),
        yAxis: names(l, waits.rows, {}),
        dataZoom: waits.rows.length > shown ? slider(l, 0, shown - 1) : [],
        tooltip: Object.assign(base(l).tooltip, { trigger: "axis", axisPointer: { type: "shadow" }, formatter: function (items) {
          const at = items[0].dataIndex;
          let text = safe(waits.rows[at]);
          for (const item of items) text += "<br>" + safe(item.seriesName) + ": <b>" + time(item.value) + "</b>";
          if (waits.whom[at] !== null) text += "<br>waits most for rank " + waits.whom[at];
          return text;
        } }),
        series: [bar("computing", waits.compute, l.accent), bar("transfers", waits.transfer, l.warn), bar("waiting", waits.waiting, l.line)]
      });
    },
    links: function (l) {
      const links = data.links, shown = Math.min(links.rows.length, 24);
      const dots = links.seconds.map(function (seconds, at) { return { value: [seconds, at], itemStyle: { color: links.slow[at] ? l.bad : l.accent } }; });
      const usual = links.usual.map(function (seconds, at) { return [seconds, at]; });
      return Object.assign(base(l), {
        legend: { top: 0, right: 0, textStyle: { color: l.soft, fontSize: 11 } },
        grid: { left: labelWidth(links.rows), right: links.rows.length > shown ? 26 : 18, top: 30, bottom: 42 },
        xAxis: axis(l, { type: "value", scale: false, name: "one transfer without waiting", nameLocation: "middle", nameGap: 26, axisLabel: { color: l.soft, fontSize: 11, hideOverlap: true, formatter: function (value) { return time(value); } } }),
        yAxis: names(l, links.rows, { splitLine: { show: true, lineStyle: { color: l.line, opacity: 0.5 } } }),
        dataZoom: links.rows.length > shown ? slider(l, 0, shown - 1) : [],
        tooltip: Object.assign(base(l).tooltip, { formatter: function (item) {
          return safe(links.rows[item.value[1]]) + "<br>" + safe(item.seriesName) + ": <b>" + time(item.value[0]) + "</b>";
        } }),
        series: [
          { name: "usual for its kind", type: "scatter", data: usual, symbol: "rect", symbolSize: [3, 12], itemStyle: { color: l.soft } },
          { name: "measured", type: "scatter", data: dots, symbolSize: 9, itemStyle: { color: l.accent } }
        ]
      });
    },
    curves: function (l, box) {
      const curve = data.curves[Number(box.dataset.at)];
      const line = function (name, values, tint, width, type) {
        return { name: name, type: "line", data: values.map(function (value, at) { return [at * curve.every, value]; }), showSymbol: false, lineStyle: { width: width, color: tint, type: type }, itemStyle: { color: tint }, connectNulls: false };
      };
      return Object.assign(base(l), {
        legend: { top: 0, left: "center", textStyle: { color: l.soft, fontSize: 11 } },
        grid: { left: 60, right: 18, top: 30, bottom: 62 },
        xAxis: axis(l, { type: "value", name: "seconds from " + curve.start, nameLocation: "middle", nameGap: 24, splitLine: { show: false } }),
        yAxis: axis(l, { type: "value", scale: true }),
        dataZoom: along(l),
        tooltip: Object.assign(base(l).tooltip, { trigger: "axis" }),
        series: [line("lowest of the others", curve.low, l.line, 1, "solid"), line("highest of the others", curve.high, l.line, 1, "solid"), line("median of all", curve.median, l.soft, 1.5, "dashed"), line(curve.name, curve.machine, l.bad, 2, "solid")]
      });
    }
  };
  function draw(box) {
    let chart = drawn.get(box);
    if (!chart) {
      box.textContent = "";
      chart = echarts.init(box, null, { renderer: "canvas" });
      drawn.set(box, chart);
    }
    chart.setOption(plots[box.dataset.plot](look(), box), true);
    box.dataset.drawn = "yes";
  }
  const boxes = Array.from(document.querySelectorAll("[data-plot]"));
  if ("IntersectionObserver" in window && !window.location.hash.includes("all")) {
    const watch = new IntersectionObserver(function (entries) {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watch.unobserve(entry.target);
        draw(entry.target);
      }
    }, { rootMargin: "200px" });
    boxes.forEach(function (box) { watch.observe(box); });
  } else {
    boxes.forEach(draw);
  }
  let waiting = null;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      drawn.forEach(function (chart, box) { chart.resize(); draw(box); });
    }, 120);
  });
  dark.addEventListener("change", function () { drawn.forEach(function (chart, box) { draw(box); }); });
  window.addEventListener("beforeprint", function () { boxes.forEach(draw); });
  for (const group of document.querySelectorAll("[data-choice]")) {
    const buttons = Array.from(group.querySelectorAll("button"));
    buttons.forEach(function (button, at) {
      button.addEventListener("click", function () {
        chosen[group.dataset.choice] = at;
        buttons.forEach(function (other) { other.setAttribute("aria-pressed", String(other === button)); });
        boxes.filter(function (box) { return box.dataset.plot === group.dataset.choice; }).forEach(draw);
      });
    });
  }
})();
