"use strict";
// Everything is readable without this script. It adds a read-out under the pointer and lets the
// legend hide a series. Values are computed back from positions: the charts carry their scales.
(function () {
  function axis(svg, name) {
    var parts = svg.getAttribute("data-" + name).split(" ").map(Number);
    return { begin: parts[0], end: parts[1], from: parts[2], to: parts[3], log: parts[4] === 1,
             label: svg.getAttribute("data-" + name + "-label") };
  }

  function value(axis, position) {
    var share = (position - axis.begin) / (axis.end - axis.begin);
    if (axis.log) { return axis.from * Math.pow(axis.to / axis.from, share); }
    return axis.from + share * (axis.to - axis.from);
  }

  function digits(number) {
    var size = Math.abs(number);
    if (size < 1e-9) { return "0"; }
    if (size >= 100) { return Math.round(number).toLocaleString("en-US"); }
    return number.toPrecision(3);
  }

  function points(series) {
    var path = series.querySelector("path.line");
    if (!path) { return []; }
    return (path.getAttribute("d").match(/[ML][^ML]+/g) || []).map(function (step) {
      var pair = step.slice(1).split(",");
      return { x: Number(pair[0]), y: Number(pair[1]) };
    });
  }

  function nearest(all, x) {
    return all.reduce(function (best, point) {
      return !best || Math.abs(point.x - x) < Math.abs(best.x - x) ? point : best;
    }, null);
  }

  function readOut(figure, svg) {
    var xAxis = axis(svg, "x");
    var yAxis = axis(svg, "y");
    var known = Array.from(svg.querySelectorAll("g.series")).map(function (series) {
      return { element: series, points: points(series) };
    });
    var box = null;
    var guide = null;

    function hide() {
      if (box) { box.remove(); box = null; }
      if (guide) { guide.remove(); guide = null; }
    }

    function show(x) {
      var near = known.filter(function (series) {
        return series.points.length > 0 && !series.element.classList.contains("off");
      }).map(function (series) {
        return { series: series.element, point: nearest(series.points, x) };
      });
      if (near.length === 0) { hide(); return; }
      var at = nearest(near.map(function (one) { return one.point; }), x).x;
      near = near.filter(function (one) { return Math.abs(one.point.x - at) < 0.6; });
      if (!guide) {
        guide = document.createElementNS(svg.namespaceURI, "path");
        guide.setAttribute("class", "guide");
        svg.appendChild(guide);
      }
      guide.setAttribute("d", "M" + at + "," + yAxis.end + "V" + yAxis.begin);
      if (!box) {
        box = document.createElement("div");
        box.className = "readout";
        box.setAttribute("role", "status");
        figure.appendChild(box);
      }
      box.textContent = "";
      var head = document.createElement("b");
      head.textContent = digits(value(xAxis, at)) + " " + (xAxis.label || "seconds");
      box.appendChild(head);
      near.forEach(function (one) {
        var line = document.createElement("div");
        line.className = one.series.getAttribute("class").replace("series", "");
        var mark = document.createElement("i");
        line.appendChild(mark);
        line.appendChild(document.createTextNode(
          one.series.getAttribute("data-name") + ": " + digits(value(yAxis, one.point.y))));
        box.appendChild(line);
      });
      place(at);
    }

    function place(at) {
      var drawn = svg.getBoundingClientRect();
      var outer = figure.getBoundingClientRect();
      var left = drawn.left - outer.left + at / svg.viewBox.baseVal.width * drawn.width + 12;
      if (left + box.offsetWidth > outer.width) { left -= box.offsetWidth + 24; }
      box.style.left = Math.max(0, left) + "px";
      box.style.top = (drawn.top - outer.top + 20) + "px";
    }

    // With the keyboard: arrows go from point to point.
    var stops = known.reduce(function (all, series) {
      return all.concat(series.points.map(function (point) { return point.x; }));
    }, []).sort(function (a, b) { return a - b; }).filter(function (x, index, all) {
      return index === 0 || x - all[index - 1] > 0.6;
    });
    var stop = 0;
    if (stops.length > 0) { svg.setAttribute("tabindex", "0"); }
    svg.addEventListener("keydown", function (event) {
      var step = { ArrowLeft: -1, ArrowRight: 1, Home: -stops.length, End: stops.length }[event.key];
      if (event.key === "Escape") { hide(); }
      if (!step) { return; }
      event.preventDefault();
      stop = Math.min(stops.length - 1, Math.max(0, box ? stop + step : stop));
      show(stops[stop]);
    });
    svg.addEventListener("blur", hide);
    svg.addEventListener("pointermove", function (event) {
      var drawn = svg.getBoundingClientRect();
      show((event.clientX - drawn.left) / drawn.width * svg.viewBox.baseVal.width);
    });
    svg.addEventListener("pointerleave", hide);
  }

  function toggles(figure) {
    figure.querySelectorAll(".legend button").forEach(function (button) {
      button.addEventListener("click", function () {
        var shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        figure.querySelectorAll("svg [data-name]").forEach(function (element) {
          if (element.getAttribute("data-name") === button.getAttribute("data-name")) {
            element.classList.toggle("off", !shown);
          }
        });
      });
    });
  }

  document.querySelectorAll("figure").forEach(function (figure) {
    figure.querySelectorAll("svg[data-x]").forEach(function (svg) { readOut(figure, svg); });
    toggles(figure);
  });
})();
