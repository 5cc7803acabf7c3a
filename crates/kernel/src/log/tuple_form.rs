//! The form of a row on the control connection: a tuple. It has no names of fields, because a log may have
//! millions of rows.

/// Makes the conversions between a row and its tuple, which has the row's values in the order of its fields.
macro_rules! tuple_form {
    ($row:ident as $tuple:ident { $($field:ident),+ }) => {
        impl From<$tuple> for $row {
            fn from(($($field),+): $tuple) -> Self {
                Self { $($field),+ }
            }
        }

        impl From<$row> for $tuple {
            fn from($row { $($field),+ }: $row) -> Self {
                ($($field),+)
            }
        }
    };
}
pub(super) use tuple_form;
