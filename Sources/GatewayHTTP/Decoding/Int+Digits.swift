extension Int {
    /// The number that a text of ASCII digits stands for; `nil` for any other text, and for a number too large.
    ///
    /// The initialiser of the standard library takes a sign as well, which no field or parameter here has.
    init?(digits text: some StringProtocol) {
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        self.init(text)
    }
}
