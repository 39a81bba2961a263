//! Writing JSON straight into a buffer, member by member, without a tree.

use serde::Serialize;

/// An object being written.
pub(crate) struct Object<'b> {
    out: &'b mut Vec<u8>,
    empty: bool,
}

impl Object<'_> {
    /// Appends the object that `fill` describes to `out`.
    pub(crate) fn write(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        out.push(b'{');
        fill(&mut Object { out, empty: true });
        out.push(b'}');
    }

    /// A member.
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.name(name);
        append(self.out, value);
    }

    /// A member whose value is written already.
    pub(crate) fn raw(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        self.out.extend_from_slice(json);
    }

    /// A member that is left out when there is nothing to say.
    pub(crate) fn put_some<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(name, &value);
        }
    }

    /// A member that is an object.
    pub(crate) fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        Object::write(self.out, fill);
    }

    /// A member that is an array.
    pub(crate) fn array(&mut self, name: &str, fill: impl FnOnce(&mut Array<'_>)) {
        self.name(name);
        Array::write(self.out, fill);
    }

    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        append(self.out, name);
        self.out.push(b':');
    }
}

/// An array being written.
pub(crate) struct Array<'b> {
    out: &'b mut Vec<u8>,
    empty: bool,
}

impl Array<'_> {
    /// Appends the array that `fill` describes to `out`.
    pub(crate) fn write(out: &mut Vec<u8>, fill: impl FnOnce(&mut Array<'_>)) {
        out.push(b'[');
        fill(&mut Array { out, empty: true });
        out.push(b']');
    }

    /// An entry.
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        self.comma();
        append(self.out, value);
    }

    /// An entry that is written already.
    pub(crate) fn raw(&mut self, json: &[u8]) {
        self.comma();
        self.out.extend_from_slice(json);
    }

    /// An entry that is an object.
    pub(crate) fn object(&mut self, fill: impl FnOnce(&mut Object<'_>)) {
        self.comma();
        Object::write(self.out, fill);
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
    }
}

fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("text, numbers and JSON always have a spelling");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_and_nowhere_else() {
        let mut out = Vec::new();
        Object::write(&mut out, |object| {
            object.put("a", &1);
            object.put_some("b", None::<u8>);
            object.array("c", |array| {
                array.put("x\n");
                array.object(|_| {});
                array.object(|inner| inner.put("d", &true));
            });
            object.object("e", |_| {});
        });
        assert_eq!(out, br#"{"a":1,"c":["x\n",{},{"d":true}],"e":{}}"#);
    }
}
