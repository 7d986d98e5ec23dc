/// Why a vector can't be used as a test; a vector that is not understood whole must not pass.
struct VectorProblem: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
