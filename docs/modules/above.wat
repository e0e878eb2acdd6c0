;; Selects records of 12 bytes, a u4 and an f8, whose second number is above 7.5. Their numbers are
;; the first ones: answer() in a key or a value.
(module
  (memory (export "memory") 1)
  (func (export "select")
    (param $record i32) (param $count i32) (param $record_bytes i32) (param $answer i32)
    (result i32)
    (block $all
      (loop $next
        (br_if $all (i32.eqz (local.get $count)))
        (if (f64.gt (f64.load offset=4 align=1 (local.get $record)) (f64.const 7.5))
          (then
            (i64.store (local.get $answer) (i64.load32_u align=1 (local.get $record)))))
        (local.set $record (i32.add (local.get $record) (local.get $record_bytes)))
        (local.set $answer (i32.add (local.get $answer) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (i32.const 0)))
