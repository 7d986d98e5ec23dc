extension Duration {
    /// The duration's whole milliseconds, as configuration writes it.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = self.components
        return Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
    }
}
