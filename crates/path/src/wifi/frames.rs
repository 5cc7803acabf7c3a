//! The frames of a link over Wi-Fi that were sent and are not settled, of all categories.

use super::category::AccessCategory;
use super::window::Window;

/// What a link has at the medium.
#[derive(Debug)]
pub(crate) struct Frames<T> {
    windows: [Window<T>; AccessCategory::ALL.len()],
    /// The nanoseconds within the measuring window for which the link's frames and their acknowledgements had
    /// the medium.
    busy_ns: u64,
}

impl<T> Default for Frames<T> {
    fn default() -> Self {
        Self { windows: AccessCategory::ALL.map(|_| Window::default()), busy_ns: 0 }
    }
}

impl<T> Frames<T> {
    /// The frames inside.
    pub(crate) fn len(&self) -> usize {
        self.windows.iter().map(Window::len).sum()
    }

    /// The frames of a category.
    pub(crate) fn of(&self, category: AccessCategory) -> &Window<T> {
        &self.windows[category.index()]
    }

    /// The frames of a category, to be changed.
    pub(crate) fn of_mut(&mut self, category: AccessCategory) -> &mut Window<T> {
        &mut self.windows[category.index()]
    }

    /// The nanoseconds for which the link had the medium.
    pub(crate) const fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// The time in ns for which the link has had the medium, within the measuring window.
    pub(crate) fn add_busy_ns(&mut self, nanos: u64) {
        self.busy_ns += nanos;
    }
}
