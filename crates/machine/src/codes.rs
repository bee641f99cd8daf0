/// Defines an enumeration whose variants have codes on the wire, names for programs, or both.
///
/// Codes give `ALL` (every variant, in the order of their definition), `code` and `from_code`, names give `ALL`, `name` and
/// `from_name`. An unknown code is `None`, or the variant behind `else`, which keeps it.
///
/// ```
/// hodo_machine::codes! {
///     /// What a message is.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Kind: u8 {
///         /// A question.
///         Ping = 7 => "ping",
///         /// The answer to it.
///         Pong = 8 => "pong",
///     }
/// }
/// assert_eq!(Kind::from_code(8), Some(Kind::Pong));
/// assert_eq!(Kind::from_code(9), None);
/// assert_eq!(Kind::from_name("ping").map(Kind::code), Some(7));
///
/// hodo_machine::codes! {
///     /// How it ended.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum End: u16 {
///         /// Well.
///         Done = 0,
///     } else {
///         /// A code that is not assigned.
///         Other
///     }
/// }
/// assert_eq!(End::from_code(5), End::Other(5));
/// assert_eq!(End::Other(5).code(), 5);
///
/// hodo_machine::codes! {
///     /// Which way.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Way {
///         /// To the far end.
///         Out => "out",
///         /// From the far end.
///         Back => "back",
///     }
/// }
/// assert_eq!(Way::ALL.map(Way::name), ["out", "back"]);
/// ```
#[macro_export]
macro_rules! codes {
    (
        $(#[$about:meta])* $vis:vis enum $Name:ident : $Code:ident {
            $( $(#[$doc:meta])* $Variant:ident = $code:literal ),+ $(,)?
        }
    ) => {
        $(#[$about])* #[repr($Code)] $vis enum $Name { $( $(#[$doc])* $Variant = $code ),+ }

        $crate::codes!(@codes $Name: $Code { $( $Variant = $code ),+ });
    };
    (
        $(#[$about:meta])* $vis:vis enum $Name:ident : $Code:ident {
            $( $(#[$doc:meta])* $Variant:ident = $code:literal => $name:literal ),+ $(,)?
        }
    ) => {
        $(#[$about])* #[repr($Code)] $vis enum $Name { $( $(#[$doc])* $Variant = $code ),+ }

        $crate::codes!(@codes $Name: $Code { $( $Variant = $code ),+ });
        $crate::codes!(@names $Name { $( $Variant => $name ),+ });
    };
    (
        $(#[$about:meta])* $vis:vis enum $Name:ident {
            $( $(#[$doc:meta])* $Variant:ident => $name:literal ),+ $(,)?
        }
    ) => {
        $(#[$about])* $vis enum $Name { $( $(#[$doc])* $Variant ),+ }

        $crate::codes!(@all $Name { $( $Variant ),+ });
        $crate::codes!(@names $Name { $( $Variant => $name ),+ });
    };
    (
        $(#[$about:meta])* $vis:vis enum $Name:ident : $Code:ident {
            $( $(#[$doc:meta])* $Variant:ident = $code:literal ),+ $(,)?
        } else { $(#[$other:meta])* $Other:ident }
    ) => {
        $(#[$about])* $vis enum $Name { $( $(#[$doc])* $Variant, )+ $(#[$other])* $Other($Code) }

        impl $Name {
            /// Returns the variant of a code.
            #[must_use]
            #[inline]
            pub const fn from_code(code: $Code) -> Self {
                match code { $( $code => Self::$Variant, )+ other => Self::$Other(other) }
            }

            /// Returns the code on the wire.
            #[must_use]
            #[inline]
            pub const fn code(self) -> $Code {
                match self { $( Self::$Variant => $code, )+ Self::$Other(code) => code }
            }
        }
    };
    (@codes $Name:ident : $Code:ident { $( $Variant:ident = $code:literal ),+ }) => {
        $crate::codes!(@all $Name { $( $Variant ),+ });

        impl $Name {
            /// Returns the code on the wire.
            #[must_use]
            #[inline]
            pub const fn code(self) -> $Code {
                self as $Code
            }

            /// Returns the variant of a code, or `None` if the code is not assigned.
            #[must_use]
            #[inline]
            pub const fn from_code(code: $Code) -> Option<Self> {
                match code { $( $code => Some(Self::$Variant), )+ _ => None }
            }
        }
    };
    (@names $Name:ident { $( $Variant:ident => $name:literal ),+ }) => {
        impl $Name {
            /// Returns the name for programs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$Variant => $name, )+ }
            }

            /// Returns the variant of a name, or `None` if no variant has it.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $name => Some(Self::$Variant), )+ _ => None }
            }
        }
    };
    (@all $Name:ident { $( $Variant:ident ),+ }) => {
        impl $Name {
            /// Every variant, in the order of their definition.
            pub const ALL: [Self; [$( stringify!($Variant) ),+].len()] = [$( Self::$Variant ),+];
        }
    };
}
