// Moves the mark of each waveform with its sound, and keeps the sounds at one moment of the call.
for (const section of document.querySelectorAll("section.sound")) {
  const audio = section.querySelector("audio");
  const drawing = section.querySelector("svg.waveform");
  const mark = drawing.querySelector(".mark");
  const width = drawing.viewBox.baseVal.width;
  const seconds = Number(section.dataset.seconds);
  const show = () => {
    const x = width * Math.min(1, audio.currentTime / seconds);
    mark.setAttribute("x1", x);
    mark.setAttribute("x2", x);
    mark.style.visibility = "visible";
    if (!audio.paused) requestAnimationFrame(show);
  };
  audio.addEventListener("play", () => {
    for (const other of document.querySelectorAll("section.sound audio")) {
      if (other === audio) continue;
      if (!other.paused) {
        audio.currentTime = other.currentTime;
        other.pause();
      }
    }
    show();
  });
  audio.addEventListener("seeked", show);
  drawing.addEventListener("click", (event) => {
    const box = drawing.getBoundingClientRect();
    audio.currentTime = seconds * (event.clientX - box.left) / box.width;
  });
}
