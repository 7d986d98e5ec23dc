/// Says why a text is not acceptable JSON.
struct JSONTextError: Error, Equatable {
    let reason: String
}
