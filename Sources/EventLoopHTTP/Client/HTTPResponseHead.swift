/// The head of a final answer.
struct HTTPResponseHead {
    /// The status code, 200 to 599.
    var status: Int
    /// The field lines as received.
    var fields: HTTPFieldLines
}
