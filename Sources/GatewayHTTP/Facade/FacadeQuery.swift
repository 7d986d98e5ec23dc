import FCMModel

/// The query of a facade's request; parameters that nobody asks for are ignored, as Google's front end does.
struct FacadeQuery {
    private var values: [String: String] = [:]

    /// Reads the query behind a path; of a repeated parameter the last value counts.
    init(_ path: [UInt8]) {
        guard let start = path.firstIndex(of: UInt8(ascii: "?")) else { return }
        for pair in path[(start + 1)...].split(separator: UInt8(ascii: "&")) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            let value = pair[end...].dropFirst().map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
            guard let name = PercentEncoding.decoded(pair[..<end]), let value = PercentEncoding.decoded(value) else {
                continue
            }
            self.values[name] = value
        }
    }

    /// A parameter by its name or its other spelling; `nil` where it is absent or empty.
    func text(_ name: String, or camelCase: String? = nil) -> String? {
        let text = self.values[name] ?? camelCase.flatMap { self.values[$0] }
        return text?.isEmpty == false ? text : nil
    }
}
