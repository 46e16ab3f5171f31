use std::fmt;

/// A paper that can't be made a PDF.
#[derive(Debug)]
pub struct PdfError {
    message: String,
    hint: Option<String>,
}

impl PdfError {
    pub(crate) fn new(message: impl Into<String>) -> PdfError {
        PdfError { message: message.into(), hint: None }
    }

    /// Only the program on the PATH can be missing.
    #[cfg(any(not(feature = "typst"), test))]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> PdfError {
        self.hint = Some(hint.into());
        self
    }

    /// What to do about it, without a leading `hint:`.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for PdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PdfError {}
