/// A sample that breaks the rules of what it is a sample of.
package struct SampleError: Error, Hashable {
    /// What could not be made.
    package var what: String

    /// Tells what could not be made.
    package init(what: String) {
        self.what = what
    }
}
