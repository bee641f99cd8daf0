//! Types as JSON, which a recording has in each row: `"double[]"`, `{"structure":"time_t","fields":[["secondsPastEpoch","long"], …]}`.

use crate::machines::{Scalar, Type};
use serde_json::{Value as Json, json};

/// Returns a type as JSON. Bounds of arrays and texts are left out.
pub(super) fn text(of: &Type) -> String {
    to_json(of).to_string()
}

/// Returns the type that a text stands for; `None` for another text.
pub(super) fn parse(text: &str) -> Option<Type> {
    from_json(&serde_json::from_str(text).ok()?)
}

fn to_json(of: &Type) -> Json {
    let kind = match of {
        Type::Scalar(scalar) => return scalar.name().into(),
        Type::BoundedText(_) => return Scalar::Text.name().into(),
        Type::Array(scalar, _) => return format!("{}[]", scalar.name()).into(),
        Type::Any => return "any".into(),
        Type::AnyArray => return "any[]".into(),
        Type::Structure(_) => "structure",
        Type::StructureArray(_) => "structure[]",
        Type::Union(_) => "union",
        Type::UnionArray(_) => "union[]",
    };
    let members = of.members().map(|members| members.fields()).unwrap_or_default();
    let fields: Vec<Json> = members.iter().map(|field| json!([&*field.name, to_json(&field.of)])).collect();
    json!({ kind: of.id(), "fields": fields })
}

fn from_json(json: &Json) -> Option<Type> {
    if let Some(name) = json.as_str() {
        let (single, is_array) = name.strip_suffix("[]").map_or((name, false), |single| (single, true));
        let of = if single == "any" { Type::Any } else { Type::Scalar(Scalar::from_name(single)?) };
        return if is_array { of.into_array() } else { Some(of) };
    }
    let field = |field: &Json| Some((field.get(0)?.as_str()?.to_owned(), from_json(field.get(1)?)?));
    let fields = json.get("fields")?.as_array()?.iter().map(field).collect::<Option<Vec<_>>>()?;
    let id = |kind| json.get(kind).and_then(Json::as_str);
    Some(match (id("structure"), id("structure[]"), id("union"), id("union[]")) {
        (Some(id), ..) => Type::structure(id, fields),
        (_, Some(id), ..) => Type::structure(id, fields).into_array()?,
        (_, _, Some(id), _) => Type::union(id, fields),
        (_, _, _, Some(id)) => Type::union(id, fields).into_array()?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::normative::Normative;

    #[test]
    fn any_type_is_found_again_in_its_text() {
        let inner = Type::structure("inner_t", [("a", Scalar::I8.into()), ("b", Type::array(Scalar::Text))]);
        let choice = Type::union("", [("x", inner.clone()), ("y", Type::AnyArray)]);
        let of = Type::structure(
            "top \"t\"",
            [
                ("all", choice.clone()),
                ("many", choice.into_array().unwrap()),
                ("rows", inner.into_array().unwrap()),
                ("any", Type::Any),
            ],
        );
        for of in [of, Normative::nd_array().build(), Scalar::U64.into()] {
            assert_eq!(parse(&text(&of)), Some(of));
        }
        assert_eq!(text(&Type::array(Scalar::F64)), "\"double[]\"");
        assert_eq!(["", "\"nothing\"", "{\"structure\":\"\"}", "[]"].map(parse), [None, None, None, None]);
    }
}
