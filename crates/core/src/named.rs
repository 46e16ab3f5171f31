/// Makes an enum whose variants have names for people: `ALL` has them in their order, `name` says one.
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* $vis:vis enum $Enum:ident {
        $($(#[$of_variant:meta])* $Variant:ident = $name:literal,)+
    }) => {
        $(#[$attribute])*
        $vis enum $Enum {
            $($(#[$of_variant])* $Variant),+
        }

        impl $Enum {
            $vis const ALL: [$Enum; [$($name),+].len()] = [$($Enum::$Variant),+];

            $vis const fn name(self) -> &'static str {
                match self {
                    $($Enum::$Variant => $name),+
                }
            }
        }
    };
}
