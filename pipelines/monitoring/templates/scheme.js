// Style sheets do not apply to Bokeh's canvas: this script sets the colors of the scheme in its models.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const ink = dark.matches ? "#d5dae1" : "#24292f", faint = dark.matches ? "#363c45" : "#dfe3e8";
    const paper = dark.matches ? "#1a1e24" : "#ffffff";
    for (const document of Bokeh.documents) {
      for (const model of document._all_models.values()) {
        const give = (values) => {
          const known = Object.entries(values).filter(([key]) => key in model.properties);
          model.setv(Object.fromEntries(known), {sync: false});  // the server need not know
        };
        give({
          background_fill_color: paper, border_fill_color: paper, outline_line_color: faint, text_color: ink,
          axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink, major_tick_line_color: ink,
          minor_tick_line_color: faint, label_text_color: ink, border_line_color: paper,
        });
        if (model.grid_line_color) give({grid_line_color: faint});
      }
    }
    window.document.documentElement.dataset.painted = dark.matches ? "dark" : "light";
  }
  dark.addEventListener("change", paint);
  (function wait() {
    const ready = window.Bokeh !== undefined && Bokeh.documents.length > 0 && Bokeh.documents.every((d) => d.is_idle);
    if (ready) paint(); else window.setTimeout(wait, 50);
  })();
})();
